// checksum: a file laid out before is read through a hash, as md5sum does.
#include <fmt/format.h>

#include "agent/workload/hasher.h"
#include "agent/workload/workloads.h"
#include "storage/base/units.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// The time of hashing stands beside that of reading, so that one sees which of them is the limit.
enum Kind : std::size_t { kRead = 0, kHash = 1 };

struct ChecksumWork {
  fs::File* file = nullptr;
  std::string path;
  Bytes size;
  Bytes block;
  Hasher* hasher = nullptr;
};

Task<Result<void>> RunChecksum(Client* client, const ChecksumWork* work) {
  AlignedBuffer buffer(work->block);
  for (Offset at; at.value() < work->size.count(); at += work->block) {
    const MutableView view = buffer.first(std::min(work->block, work->size - Bytes(at.value())));
    if (!client->Begin()) co_return Result<void>();
    Result<void> read = co_await work->file->ReadFull({}, at, view);
    if (!read) {
      co_return client->Failed(kRead, fmt::format("{} at byte {}", work->path, at.value()),
                               read.error());
    }
    client->Part(kRead, Bytes(view.size()));
    work->hasher->Add(view);
    client->Part(kHash, Bytes(view.size()));
  }
  co_return Result<void>();
}

Task<Result<void>> MakeHole(fs::FileSystem* file_system, FileSpec file) {
  Result<std::unique_ptr<fs::File>> opened = co_await file_system->Open(
      file.path, {.access = fs::Access::kWrite, .create = true, .exclusive = true});
  if (!opened) co_return std::unexpected(opened.error());
  Result<void> grown = co_await (*opened)->Truncate(file.size);
  if (!grown) co_return grown;
  Result<void> synced = co_await (*opened)->Sync({}, fs::SyncKind::kFull);
  if (!synced) co_return synced;
  Result<void> checked = co_await CheckLaidOut(file_system, file, /*may_be_sparse=*/true);
  co_return checked;
}

class Checksum final : public FileWorkload {
 public:
  Checksum(const v1::ChecksumWorkload& spec, Setup setup)
      : FileWorkload(setup, spec.holes() ? v1::DATA_KIND_ZEROS : v1::DATA_KIND_RANDOM),
        spec_(spec),
        file_{"checksum.dat", FileId{0}, Bytes(spec.file())} {
    if (spec.cache() == v1::CACHE_WARM) WarnIfCached(Bytes(spec.file()));
  }

  std::vector<StepInfo> Steps() const override {
    return {{.name = "checksum", .has_warm_up = false}};
  }
  Result<LayOutReport> LayOut(const StepContext& context) override {
    if (!spec_.holes()) return LayOutFiles(setup_, data_, FileList::Of({file_}), context);
    Result<void> made = RunOne(*setup_.launcher, MakeHole(&setup_.file_system(), file_));
    if (!made) return std::unexpected(made.error());
    return LayOutReport{};
  }
  bool WantsColdCache(std::size_t) const override { return spec_.cache() == v1::CACHE_COLD; }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  Result<VerifyReport> Verify(const StepContext& context) override;

 private:
  v1::ChecksumWorkload spec_;
  FileSpec file_;
  std::string measured_;  // the hash that the step came to
};

StepOutcome Checksum::RunStep(std::size_t, const StepContext& context) {
  Result<std::unique_ptr<fs::File>> file = OpenFile(file_.path, {});
  if (!file) return Stillborn(file.error());
  const std::unique_ptr<Hasher> hasher = MakeHasher(spec_.hash());
  const ChecksumWork work{.file = file->get(),
                          .path = file_.path,
                          .size = file_.size,
                          .block = Bytes(spec_.block()),
                          .hasher = hasher.get()};
  StepPlan plan;
  plan.step = "checksum";
  plan.primary = v1::PRIMARY_METRIC_BYTES_PER_SECOND;
  plan.kinds = {{.name = "read", .moves = Moves::kReads}, {.name = "hash", .counted = false}};
  plan.expected_operations = (spec_.file() + spec_.block() - 1) / spec_.block();
  StepOutcome outcome =
      RunEngine(plan, context, [&](Client& client) { return RunChecksum(&client, &work); });
  if (outcome.status) measured_ = hasher->Hex();
  return outcome;
}

// The right hash comes from the data's own definition, so that a fault in lay-out is seen too.
Result<VerifyReport> Checksum::Verify(const StepContext& context) {
  const std::unique_ptr<Hasher> hasher = MakeHasher(spec_.hash());
  AlignedBuffer buffer(kWorkBlock);
  ByteProgress progress(context, file_.size);
  for (Offset at; at.value() < file_.size.count(); at += kWorkBlock) {
    if (progress.cancelled()) return Fail(Errc::kCancelled, "cancelled");
    const MutableView view = buffer.first(std::min(kWorkBlock, file_.size - Bytes(at.value())));
    data_.Fill(file_.id, at, Generation{0}, view);
    hasher->Add(view);
    progress.Add(Bytes(view.size()));
  }
  const std::string right = hasher->Hex();
  const bool matched = right == measured_;
  const std::string_view name = HashName(spec_.hash());
  return VerifyReport{
      .outcome = matched ? v1::VERIFY_OUTCOME_MATCHED : v1::VERIFY_OUTCOME_MISMATCHED,
      .detail = matched ? fmt::format("{} {} of {}", name, right, FormatBytes(file_.size))
                        : fmt::format("{}: {} is {}, expected {}", file_.path, name,
                                      measured_.empty() ? "not known" : measured_, right),
      .bytes = file_.size};
}

}  // namespace

MadeWorkload MakeChecksum(const v1::Workload& spec, const Setup& setup) {
  const Bytes block(spec.checksum().block());
  const Result<void> fits = CheckMemory(setup, {.block = block, .buffers = block, .kind_count = 2});
  if (!fits) return std::unexpected(fits.error());
  return std::make_unique<Checksum>(spec.checksum(), setup);
}

}  // namespace labrack::workload
