// stream: each client writes or reads one large file from start to end, as dd does.
#include <fmt/format.h>

#include "agent/workload/workloads.h"

namespace labrack::workload {
namespace {

using runtime::Task;

enum Kind : std::size_t { kTransfer = 0, kFsync = 1 };

struct StreamWork {
  fs::File* file = nullptr;
  FileSpec spec;
  Bytes block;
  bool sync_at_end = false;
  DataFeed* feed = nullptr;  // null where it is read
};

std::string Where(const FileSpec& spec, Offset at) {
  return fmt::format("{} at byte {}", spec.path, at.value());
}

// The blocks of the file from its start to its end.
DataFeed::Make MakeBlocks(const Data* data, FileSpec file) {
  return [data, file, at = Offset(0)](std::size_t, MutableView into) mutable {
    const Bytes length = std::min(Bytes(into.size()), file.size - Bytes(at.value()));
    if (length.count() == 0) return std::optional<Bytes>();
    // A feed's buffers are zeros to begin with.
    if (data->kind() != v1::DATA_KIND_ZEROS) {
      data->Fill(file.id, at, Generation{0}, into.first(length.size()));
    }
    at += length;
    return std::optional(length);
  };
}

Task<Result<void>> WriteStream(Client* client, const StreamWork* work) {
  for (Offset at; at.value() < work->spec.size.count(); at += work->block) {
    if (!work->feed->Ready(client)) co_await work->feed->Wait(client);
    const MutableView view = work->feed->Take().value().data;
    if (!client->Begin()) co_return Result<void>();
    Result<void> done = co_await work->file->Write({}, at, view);
    if (!done) co_return client->Failed(kTransfer, Where(work->spec, at), done.error());
    client->End(kTransfer, Bytes(view.size()));
  }
  if (!work->sync_at_end || !client->Begin()) co_return Result<void>();
  Result<void> synced = co_await work->file->Sync({}, fs::SyncKind::kFull);
  if (!synced) co_return client->Failed(kFsync, work->spec.path, synced.error());
  client->End(kFsync, Bytes(0));
  co_return Result<void>();
}

Task<Result<void>> ReadStream(Client* client, const StreamWork* work) {
  AlignedBuffer buffer(work->block);
  for (Offset at; at.value() < work->spec.size.count(); at += work->block) {
    const Bytes length = std::min(work->block, work->spec.size - Bytes(at.value()));
    if (!client->Begin()) co_return Result<void>();
    Result<void> done = co_await work->file->ReadFull({}, at, buffer.first(length));
    if (!done) co_return client->Failed(kTransfer, Where(work->spec, at), done.error());
    client->End(kTransfer, length);
  }
  co_return Result<void>();
}

FeedShape FeedShapeOf(const v1::StreamWorkload& stream, std::uint32_t cpu_count) {
  const Bytes block(stream.block());
  if (stream.direction() == v1::DIRECTION_READ) return {.block = block};
  return FeedShape::For(block, stream.clients(), cpu_count);
}

class Stream final : public FileWorkload {
 public:
  Stream(const v1::StreamWorkload& spec, Setup setup)
      : FileWorkload(setup, spec.data()),
        spec_(spec),
        reads_(spec.direction() == v1::DIRECTION_READ) {
    std::vector<FileSpec> files;
    for (std::uint32_t i = 0; i < spec.clients(); ++i) {
      files.push_back({fmt::format("stream-{}.dat", i), FileId{i}, Bytes(spec.file())});
    }
    files_ = FileList::Of(std::move(files));
    const Bytes total = Bytes(spec.file()) * spec.clients();
    WarnIfCrowded(spec.clients());
    if (reads_ && !spec.direct() && spec.cache() == v1::CACHE_WARM) WarnIfCached(total);
    if (!reads_ && spec.sync() == v1::STREAM_SYNC_NONE) Warn(WarnNoSync("set `sync: end`"));
  }

  std::vector<StepInfo> Steps() const override {
    return {{.name = reads_ ? "read" : "write", .has_warm_up = false}};
  }
  Result<LayOutReport> LayOut(const StepContext& context) override {
    if (!reads_) return LayOutReport{};
    return LayOutFiles(setup_, data_, files_, context);
  }
  bool WantsColdCache(std::size_t) const override {
    return reads_ && spec_.cache() == v1::CACHE_COLD;
  }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  bool ReadsBack() const override { return spec_.verify() != v1::VERIFY_NONE; }
  Result<VerifyReport> Verify(const StepContext& context) override {
    if (spec_.verify() == v1::VERIFY_NONE) {
      return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_ASKED, .detail = {}, .bytes = {}};
    }
    return VerifyFiles(setup_, data_, ExpectationList::Of(files_), context);
  }

 private:
  fs::OpenOptions Options() const {
    if (reads_) return {.access = fs::Access::kRead, .direct = spec_.direct()};
    return {.access = fs::Access::kWrite,
            .create = true,
            .exclusive = true,
            .direct = spec_.direct(),
            .data_sync = spec_.sync() == v1::STREAM_SYNC_EACH};
  }

  v1::StreamWorkload spec_;
  bool reads_;
  FileList files_;
};

StepOutcome Stream::RunStep(std::size_t, const StepContext& context) {
  std::vector<std::unique_ptr<fs::File>> handles;
  std::vector<StreamWork> works;
  std::vector<std::unique_ptr<DataFeed>> feeds;
  const FeedShape shape = FeedShapeOf(spec_, setup_.target.cpu_count);
  for (std::uint32_t i = 0; i < spec_.clients(); ++i) {
    Result<std::unique_ptr<fs::File>> opened = OpenFile(files_.at(i).path, Options());
    if (!opened) return Stillborn(opened.error());
    works.push_back({.file = opened->get(),
                     .spec = files_.at(i),
                     .block = Bytes(spec_.block()),
                     .sync_at_end = spec_.sync() == v1::STREAM_SYNC_END,
                     .feed = nullptr});
    handles.push_back(*std::move(opened));
    if (reads_) continue;
    feeds.push_back(
        std::make_unique<DataFeed>(*setup_.env, shape, MakeBlocks(&data_, files_.at(i))));
    works.back().feed = feeds.back().get();
  }
  StepPlan plan;
  plan.step = Steps()[0].name;
  plan.primary = v1::PRIMARY_METRIC_BYTES_PER_SECOND;
  plan.kinds = {{.name = plan.step, .moves = reads_ ? Moves::kReads : Moves::kWrites}};
  if (!reads_ && spec_.sync() == v1::STREAM_SYNC_END) {
    plan.kinds.push_back({.name = "fsync", .counted = false});
  }
  plan.clients = spec_.clients();
  const std::uint64_t blocks = (spec_.file() + spec_.block() - 1) / spec_.block();
  plan.expected_operations = blocks * spec_.clients();
  const auto body = [&](Client& client) {
    const StreamWork* work = &works[client.index()];
    return reads_ ? ReadStream(&client, work) : WriteStream(&client, work);
  };
  return RunEngine(plan, context, body, feeds);
}

}  // namespace

MadeWorkload MakeStream(const v1::Workload& spec, const Setup& setup) {
  const v1::StreamWorkload& stream = spec.stream();
  if (Result<void> block =
          CheckMultiple("block", Bytes(stream.block()), kSector, "data is made in sectors");
      !block) {
    return std::unexpected(block.error());
  }
  if (stream.direct()) {
    for (const auto& [name, value] :
         {std::pair{"block", stream.block()}, {"file", stream.file()}}) {
      Result<void> aligned =
          CheckMultiple(name, Bytes(value), kDirectUnit, "direct I/O needs whole blocks");
      if (!aligned) return std::unexpected(aligned.error());
    }
  }
  const MemoryNeed need{
      .clients = stream.clients(),
      .block = Bytes(stream.block()),
      .buffers = FeedShapeOf(stream, setup.target.cpu_count).memory(),
      .kind_count = 2,
  };
  if (Result<void> fits = CheckMemory(setup, need); !fits) return std::unexpected(fits.error());
  return std::make_unique<Stream>(stream, setup);
}

}  // namespace labrack::workload
