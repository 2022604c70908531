// random and sync_pages: pages at random places of a file laid out before (pages.h).
#include <algorithm>

#include <fmt/format.h>

#include "agent/workload/pages.h"
#include "agent/workload/workloads.h"
#include "storage/base/units.h"
#include "storage/fs/file_device.h"

namespace labrack::workload {
namespace {

// More handles than this bring nothing, and descriptors are limited; clients then share them.
constexpr std::uint32_t kHandlesMax = 256;

// Both workloads, brought to what they have in common.
struct PagePlan {
  StepPlan step;
  FileSpec file;
  Bytes page;
  double read_share = 0;
  bool direct = false;
  bool data_sync = false;
  bool cold = false;
  bool verify = false;
  v1::DataKind data = v1::DATA_KIND_RANDOM;
};

class PageWorkload final : public FileWorkload {
 public:
  PageWorkload(PagePlan plan, Setup setup)
      : FileWorkload(setup, plan.read_share < 1 ? plan.data : v1::DATA_KIND_RANDOM),
        plan_(std::move(plan)) {
    WarnIfCrowded(plan_.step.clients);
    if (plan_.read_share > 0 && !plan_.direct) WarnIfCached(plan_.file.size);
    if (plan_.read_share < 1 && !plan_.direct && !plan_.data_sync) {
      Warn(WarnNoSync("set `sync: true` or `direct: true`"));
    }
    if (plan_.verify && plan_.read_share < 1) {
      table_ = std::make_unique<PageTable>(plan_.file.size / plan_.page);
    }
  }

  std::vector<StepInfo> Steps() const override {
    return {{.name = plan_.step.step, .has_warm_up = plan_.step.warm_up > Nanoseconds(0)}};
  }
  Result<LayOutReport> LayOut(const StepContext& context) override {
    return LayOutFiles(setup_, data_, FileList::Of({plan_.file}), context);
  }
  bool WantsColdCache(std::size_t) const override { return plan_.cold; }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  bool ReadsBack() const override { return plan_.verify; }
  Result<VerifyReport> Verify(const StepContext& context) override;

 private:
  Result<std::unique_ptr<fs::FileDevice>> OpenDevice() const;
  void WarnIfBehind(const v1::StepResult& result);

  PagePlan plan_;
  std::unique_ptr<PageTable> table_;
};

Result<std::unique_ptr<fs::FileDevice>> PageWorkload::OpenDevice() const {
  const bool writes = plan_.read_share < 1;
  Result<std::unique_ptr<fs::File>> file =
      OpenFile(plan_.file.path, {.access = writes ? fs::Access::kReadWrite : fs::Access::kRead,
                                 .direct = plan_.direct,
                                 .data_sync = plan_.data_sync});
  if (!file) return std::unexpected(file.error());
  // Read-ahead on random reads would read what nobody asked for; a file system without the advice
  // does without.
  std::ignore = RunOne(*setup_.launcher, (*file)->Advise(fs::Advice::kRandom));
  const Bytes unit = plan_.direct ? kDirectUnit : kSector;
  const block::Geometry geometry{.size = plan_.file.size / unit * unit, .block_size = unit};
  return std::make_unique<fs::FileDevice>(*std::move(file), geometry);
}

StepOutcome PageWorkload::RunStep(std::size_t, const StepContext& context) {
  std::vector<std::unique_ptr<fs::FileDevice>> devices;
  std::vector<PageWork> works;
  for (std::uint32_t i = 0; i < std::min(plan_.step.clients, kHandlesMax); ++i) {
    Result<std::unique_ptr<fs::FileDevice>> device = OpenDevice();
    if (!device) return Stillborn(device.error());
    works.push_back({.read_kind = 0,
                     .write_kind = plan_.step.kinds.size() - 1,
                     .device = device->get(),
                     .name = plan_.file.path,
                     .page = plan_.page,
                     .page_count = plan_.file.size / plan_.page,
                     .read_share = plan_.read_share,
                     .data = &data_,
                     .file = plan_.file.id,
                     .table = table_.get()});
    devices.push_back(*std::move(device));
  }
  const bool writes = plan_.read_share < 1;
  std::vector<std::unique_ptr<PageFeed>> pages;
  std::vector<std::unique_ptr<DataFeed>> feeds;
  const FeedShape shape = PageFeed::Shape(works[0], plan_.step.clients, setup_.target.cpu_count);
  for (std::uint32_t i = 0; writes && i < plan_.step.clients; ++i) {
    const Seed seed = Derive(Derive(setup_.seed, "pages"), i);
    pages.push_back(std::make_unique<PageFeed>(&works[i % works.size()], seed, shape));
    feeds.push_back(std::make_unique<DataFeed>(*setup_.env, shape, pages.back()->Make()));
  }
  const auto body = [&](Client& client) {
    const std::uint32_t i = client.index();
    return RunPages(&client, &works[i % works.size()], writes ? pages[i].get() : nullptr,
                    writes ? feeds[i].get() : nullptr);
  };
  StepOutcome outcome = RunEngine(plan_.step, context, body, feeds);
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    for (const std::size_t slot : feeds[i]->Untaken()) pages[i]->Release(pages[i]->pick(slot));
  }
  WarnIfBehind(outcome.result);
  return outcome;
}

// An open loop that cannot keep its schedule measures its own backlog.
void PageWorkload::WarnIfBehind(const v1::StepResult& result) {
  constexpr double kShareMin = 0.99;
  double offered = 0;
  double achieved = 0;
  double not_begun = 0;
  for (const v1::Figure& figure : result.figures()) {
    if (figure.name() == "offered_rate") offered = figure.value();
    if (figure.name() == "achieved_rate") achieved = figure.value();
    if (figure.name() == "operations_not_begun") not_begun = figure.value();
  }
  if (achieved < offered * kShareMin || not_begun > 0) {
    Warn(WarnBehindSchedule(offered, achieved, not_begun));
  }
}

Result<VerifyReport> PageWorkload::Verify(const StepContext& context) {
  if (!plan_.verify) {
    return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_ASKED, .detail = {}, .bytes = {}};
  }
  Expectation expected{.file = plan_.file, .page = plan_.page, .generation = {}};
  if (table_) {
    // A rest of the file that is no whole page is never written.
    expected.generation = [this](std::uint64_t page) {
      return page < table_->page_count() ? table_->Last(page) : Generation{0};
    };
  }
  return VerifyFiles(setup_, data_, ExpectationList::Of(std::move(expected)), context);
}

struct PageFields {
  std::string clients;
  std::string page;
};

// What contradicts itself, whatever the single fields say; and what the host has no memory for.
Result<void> Check(const PagePlan& plan, const PageFields& fields, const Setup& setup) {
  const std::string& page_field = fields.page;
  if (plan.page > plan.file.size) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("{} is {}, but the file has only {}", page_field,
                            FormatBytesExact(plan.page), FormatBytesExact(plan.file.size)));
  }
  Result<void> sectors = CheckMultiple(page_field, plan.page, kSector, "data is made in sectors");
  if (!sectors) return sectors;
  if (plan.direct) {
    Result<void> aligned =
        CheckMultiple(page_field, plan.page, kDirectUnit, "direct I/O needs whole blocks");
    if (!aligned) return aligned;
  }
  if (plan.step.clients > kClientsMax) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("clients times depth is {}, at most {} are run at once",
                            plan.step.clients, kClientsMax));
  }
  const std::uint64_t pages = plan.file.size / plan.page;
  if (plan.verify && plan.read_share < 1 && pages > PageTable::kPagesMax) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("verification keeps 4 bytes for each of {} pages, at most {} pages; "
                            "make {} larger or set `verify: none`",
                            pages, PageTable::kPagesMax, page_field));
  }
  const bool writes = plan.read_share < 1;
  const FeedShape shape = writes
                              ? FeedShape::For(plan.page, plan.step.clients, setup.target.cpu_count)
                              : FeedShape{.block = plan.page};
  return CheckMemory(setup, {.clients = plan.step.clients,
                             .clients_field = fields.clients,
                             .block = plan.page,
                             .block_field = page_field,
                             .buffers = shape.memory(),
                             .shared = plan.verify && writes ? PageTable::Memory(pages) : Bytes(0),
                             .kind_count = plan.step.kinds.size()});
}

void SetStop(const v1::RandomWorkload& spec, StepPlan& step) {
  constexpr Nanoseconds kDurationDefault = std::chrono::seconds(10);
  const v1::StopRule& stop = spec.stop();
  if (stop.duration() > 0) step.duration = Nanoseconds(stop.duration());
  if (stop.operations() > 0) step.operations = stop.operations();
  if (stop.bytes() > 0) {
    // All operations are of one size, so a limit in bytes is one in operations.
    const std::uint64_t operations = (stop.bytes() + spec.block() - 1) / spec.block();
    step.operations = std::min(step.operations.value_or(operations), operations);
  }
  if (!step.duration && !step.operations) step.duration = kDurationDefault;
}

}  // namespace

MadeWorkload MakeRandom(const v1::Workload& spec, const Setup& setup) {
  const v1::RandomWorkload& random = spec.random();
  PagePlan plan;
  plan.step.step = "mix";
  if (random.read() > 0) plan.step.kinds.push_back({.name = "read", .moves = Moves::kReads});
  if (random.read() < 1) plan.step.kinds.push_back({.name = "write", .moves = Moves::kWrites});
  plan.step.clients = random.clients() * random.depth();
  plan.step.warm_up = Nanoseconds(random.warmup());
  plan.step.think = Nanoseconds(random.think());
  plan.step.rate = random.rate();
  SetStop(random, plan.step);
  plan.file = {"random.dat", FileId{0}, Bytes(random.file())};
  plan.page = Bytes(random.block());
  plan.read_share = random.read();
  plan.direct = random.direct();
  plan.data_sync = random.sync();
  plan.cold = random.cache() == v1::CACHE_COLD;
  plan.verify = random.verify() != v1::VERIFY_NONE;
  plan.data = random.data();
  if (random.rate() > 0 && random.think() > 0) {
    return Fail(Errc::kInvalidArgument,
                "`rate` and `think` contradict each other: a schedule leaves no room for pauses; "
                "leave one of them out");
  }
  if (Result<void> checked = Check(plan, {"clients` times `depth", "block"}, setup); !checked) {
    return std::unexpected(checked.error());
  }
  return std::make_unique<PageWorkload>(std::move(plan), setup);
}

MadeWorkload MakeSyncPages(const v1::Workload& spec, const Setup& setup) {
  const v1::SyncPagesWorkload& pages = spec.sync_pages();
  PagePlan plan;
  plan.step.step = "write";
  plan.step.kinds = {{.name = "write", .moves = Moves::kWrites}};
  plan.step.clients = pages.clients();
  plan.step.warm_up = Nanoseconds(pages.warmup());
  plan.step.duration = Nanoseconds(pages.duration());
  plan.file = {"pages.dat", FileId{0}, Bytes(pages.file())};
  plan.page = Bytes(pages.size());
  plan.direct = pages.direct();
  plan.data_sync = true;
  plan.verify = pages.verify() != v1::VERIFY_NONE;
  if (Result<void> checked = Check(plan, {"clients", "size"}, setup); !checked) {
    return std::unexpected(checked.error());
  }
  return std::make_unique<PageWorkload>(std::move(plan), setup);
}

}  // namespace labrack::workload
