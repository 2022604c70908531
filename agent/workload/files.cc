// files: create, stat, read and delete many small files, each a step of its own. Client c has the
// files [c * n / clients, (c + 1) * n / clients), in directories of per_directory files each, and
// takes them in the order in which they were made.
#include <array>
#include <span>

#include <fmt/format.h>

#include "agent/workload/workloads.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// Index 0 is the whole operation on one file, which is what counts; its parts stand beside it.
enum CreateKind : std::size_t { kCreate = 0, kCreateOpen, kCreateWrite, kCreateClose, kFsync };
enum ReadKind : std::size_t { kRead = 0, kReadOpen, kReadData, kReadClose };
constexpr std::size_t kStat = 0;
constexpr std::size_t kDelete = 0;

struct FilesWork {
  fs::FileSystem* file_system = nullptr;
  const Data* data = nullptr;
  const FileList* files = nullptr;
  std::span<const std::unique_ptr<DataFeed>> feeds;  // by client; of the step create
  std::uint32_t clients = 1;
  Bytes size;
  bool fsync = true;

  std::uint64_t First(std::uint32_t client) const { return files->count * client / clients; }
};

// Files up to this size are read and written in one piece.
constexpr Bytes kPieceMax = 1_MiB;

Bytes PieceOf(Bytes file) { return std::clamp(file, 1_B, kPieceMax); }

// The pieces of all files of one client, in the order in which they are written.
DataFeed::Make MakePieces(const FilesWork* work, std::uint32_t client) {
  const std::uint64_t end = work->First(client + 1);
  return [work, end, number = work->First(client), at = Offset(0)](std::size_t,
                                                                   MutableView into) mutable {
    if (number == end || work->size.count() == 0) return std::optional<Bytes>();
    const Bytes length = std::min(kPieceMax, work->size - Bytes(at.value()));
    work->data->Fill(work->files->at(number).id, at, Generation{0}, into.first(length.size()));
    at += length;
    if (at.value() == work->size.count()) {
      ++number;
      at = Offset(0);
    }
    return std::optional(length);
  };
}

Task<Result<void>> WriteWhole(Client* client, fs::File* file, Bytes size, DataFeed* feed) {
  for (Offset at; at.value() < size.count(); at += kPieceMax) {
    if (!feed->Ready(client)) co_await feed->Wait(client);
    const MutableView view = feed->Take().value().data;
    Result<void> written = co_await file->Write({}, at, view);
    if (!written) co_return written;
  }
  co_return Result<void>();
}

Task<Result<void>> CreateFiles(Client* client, const FilesWork* work) {
  DataFeed* feed = work->feeds[client->index()].get();
  const std::uint64_t end = work->First(client->index() + 1);
  for (std::uint64_t number = work->First(client->index()); number < end; ++number) {
    const FileSpec file = work->files->at(number);
    // The first piece is there before the operation begins.
    if (!feed->Ready(client)) co_await feed->Wait(client);
    if (!client->Begin()) co_return Result<void>();
    Result<std::unique_ptr<fs::File>> opened = co_await work->file_system->Open(
        file.path, {.access = fs::Access::kWrite, .create = true, .exclusive = true});
    if (!opened) co_return client->Failed(kCreateOpen, file.path, opened.error());
    client->Part(kCreateOpen, Bytes(0));
    Result<void> written = co_await WriteWhole(client, opened->get(), work->size, feed);
    if (!written) co_return client->Failed(kCreateWrite, file.path, written.error());
    client->Part(kCreateWrite, work->size);
    if (work->fsync) {
      Result<void> synced = co_await (*opened)->Sync({}, fs::SyncKind::kFull);
      if (!synced) co_return client->Failed(kFsync, file.path, synced.error());
      client->Part(kFsync, Bytes(0));
    }
    Result<void> closed = co_await (*opened)->Close();
    if (!closed) co_return client->Failed(kCreateClose, file.path, closed.error());
    client->Part(kCreateClose, Bytes(0));
    client->EndAtPart(kCreate, work->size);
  }
  co_return Result<void>();
}

Task<Result<void>> StatFiles(Client* client, const FilesWork* work) {
  const std::uint64_t end = work->First(client->index() + 1);
  for (std::uint64_t number = work->First(client->index()); number < end; ++number) {
    const FileSpec file = work->files->at(number);
    if (!client->Begin()) co_return Result<void>();
    Result<fs::FileStatus> status = co_await work->file_system->Status(file.path);
    if (!status) co_return client->Failed(kStat, file.path, status.error());
    client->End(kStat, Bytes(0));
    if (status->size != file.size) {
      const Error error(Errc::kDataMismatch, fmt::format("its size is {}, expected {}",
                                                         status->size.count(), file.size.count()));
      co_return client->Failed(kStat, file.path, error);
    }
  }
  co_return Result<void>();
}

Task<Result<void>> ReadWhole(fs::File* file, const FilesWork* work, AlignedBuffer* buffer) {
  for (Offset at; at.value() < work->size.count(); at += kPieceMax) {
    const MutableView view = buffer->first(std::min(kPieceMax, work->size - Bytes(at.value())));
    Result<void> read = co_await file->ReadFull({}, at, view);
    if (!read) co_return read;
  }
  co_return Result<void>();
}

Task<Result<void>> ReadFiles(Client* client, const FilesWork* work) {
  AlignedBuffer buffer(PieceOf(work->size));
  const std::uint64_t end = work->First(client->index() + 1);
  for (std::uint64_t number = work->First(client->index()); number < end; ++number) {
    const FileSpec file = work->files->at(number);
    if (!client->Begin()) co_return Result<void>();
    Result<std::unique_ptr<fs::File>> opened = co_await work->file_system->Open(file.path, {});
    if (!opened) co_return client->Failed(kReadOpen, file.path, opened.error());
    client->Part(kReadOpen, Bytes(0));
    Result<void> read = co_await ReadWhole(opened->get(), work, &buffer);
    if (!read) co_return client->Failed(kReadData, file.path, read.error());
    client->Part(kReadData, work->size);
    Result<void> closed = co_await (*opened)->Close();
    if (!closed) co_return client->Failed(kReadClose, file.path, closed.error());
    client->Part(kReadClose, Bytes(0));
    client->EndAtPart(kRead, work->size);
  }
  co_return Result<void>();
}

Task<Result<void>> DeleteFiles(Client* client, const FilesWork* work) {
  const std::uint64_t end = work->First(client->index() + 1);
  for (std::uint64_t number = work->First(client->index()); number < end; ++number) {
    const FileSpec file = work->files->at(number);
    if (!client->Begin()) co_return Result<void>();
    Result<void> removed = co_await work->file_system->Remove(file.path);
    if (!removed) co_return client->Failed(kDelete, file.path, removed.error());
    client->End(kDelete, Bytes(0));
  }
  co_return Result<void>();
}

Task<Result<void>> MakeDirectories(fs::FileSystem* file_system, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Result<void> made = co_await file_system->MakeDirectory(fmt::format("files-{:06}", i));
    if (!made) co_return made;
  }
  Result<void> synced = co_await file_system->SyncAll();
  co_return synced;
}

using StepBody = Task<Result<void>> (*)(Client* client, const FilesWork* work);

struct StepEntry {
  v1::FilesStep step;
  const char* name;
  std::vector<OperationKind> kinds;
  StepBody body;
};

const std::array<StepEntry, 4>& AllSteps() {
  static const std::array<StepEntry, 4> steps{{
      {v1::FILES_STEP_CREATE,
       "create",
       {{"create", true, Moves::kWrites},
        {"open", false},
        {"write", false},
        {"close", false},
        {"fsync", false}},
       CreateFiles},
      {v1::FILES_STEP_STAT, "stat", {{"stat", true}}, StatFiles},
      {v1::FILES_STEP_READ,
       "read",
       {{"read", true, Moves::kReads}, {"open", false}, {"read_data", false}, {"close", false}},
       ReadFiles},
      {v1::FILES_STEP_DELETE, "delete", {{"delete", true}}, DeleteFiles},
  }};
  return steps;
}

class Files final : public FileWorkload {
 public:
  Files(const v1::FilesWorkload& spec, Setup setup)
      : FileWorkload(setup, v1::DATA_KIND_RANDOM), spec_(spec) {
    for (const StepEntry& entry : AllSteps()) {
      bool asked = spec.steps_size() == 0;
      for (const int step : spec.steps()) asked |= step == entry.step;
      if (asked) steps_.push_back(&entry);
    }
    files_.count = spec.files();
    files_.at = [per_directory = spec.per_directory(), size = spec.size()](std::uint64_t number) {
      return FileSpec{fmt::format("files-{:06}/f{:08}", number / per_directory, number),
                      FileId{static_cast<std::uint32_t>(number)}, Bytes(size)};
    };
    WarnIfCrowded(spec.clients());
    if (Has(v1::FILES_STEP_READ) && spec.cache() == v1::CACHE_WARM && spec.size() > 0) {
      WarnIfCached(Bytes(spec.size()) * spec.files());
    }
    if (Has(v1::FILES_STEP_CREATE) && !spec.fsync()) Warn(WarnNoSync("set `fsync: true`"));
  }

  std::vector<StepInfo> Steps() const override {
    std::vector<StepInfo> infos;
    for (const StepEntry* entry : steps_) infos.push_back({.name = entry->name});
    return infos;
  }
  Result<LayOutReport> LayOut(const StepContext& context) override;
  bool WantsColdCache(std::size_t step) const override {
    return spec_.cache() == v1::CACHE_COLD && steps_[step]->step != v1::FILES_STEP_CREATE;
  }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  std::size_t VerifyAfter() const override {
    const std::size_t last = steps_.size() - 1;
    return steps_[last]->step == v1::FILES_STEP_DELETE && last > 0 ? last - 1 : last;
  }
  bool ReadsBack() const override { return spec_.verify() != v1::VERIFY_NONE && !deleted_; }
  Result<VerifyReport> Verify(const StepContext& context) override;

 private:
  bool Has(v1::FilesStep step) const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [&](const StepEntry* entry) { return entry->step == step; });
  }

  v1::FilesWorkload spec_;
  std::vector<const StepEntry*> steps_;  // in the order of execution; never empty
  FileList files_;
  bool deleted_ = false;
};

// Without the step create, the files must be there for the others.
Result<LayOutReport> Files::LayOut(const StepContext& context) {
  const std::uint64_t directories =
      (files_.count + spec_.per_directory() - 1) / spec_.per_directory();
  Result<void> made = RunOne(*setup_.launcher, MakeDirectories(&setup_.file_system(), directories));
  if (!made) return std::unexpected(made.error());
  if (Has(v1::FILES_STEP_CREATE)) return LayOutReport{};
  return LayOutFiles(setup_, data_, files_, context);
}

StepOutcome Files::RunStep(std::size_t step, const StepContext& context) {
  const StepEntry& entry = *steps_[step];
  if (entry.step == v1::FILES_STEP_DELETE) deleted_ = true;
  std::vector<std::unique_ptr<DataFeed>> feeds;
  FilesWork work{.file_system = &setup_.file_system(),
                 .data = &data_,
                 .files = &files_,
                 .feeds = {},
                 .clients = spec_.clients(),
                 .size = Bytes(spec_.size()),
                 .fsync = spec_.fsync()};
  const FeedShape shape = FeedShape::For(PieceOf(work.size), work.clients, setup_.target.cpu_count);
  for (std::uint32_t i = 0; entry.step == v1::FILES_STEP_CREATE && i < work.clients; ++i) {
    feeds.push_back(std::make_unique<DataFeed>(*setup_.env, shape, MakePieces(&work, i)));
  }
  work.feeds = feeds;
  StepPlan plan;
  plan.step = entry.name;
  plan.kinds = entry.kinds;
  plan.clients = spec_.clients();
  plan.expected_operations = files_.count;
  const auto body = [&](Client& client) { return entry.body(&client, &work); };
  return RunEngine(plan, context, body, feeds);
}

Result<VerifyReport> Files::Verify(const StepContext& context) {
  if (spec_.verify() == v1::VERIFY_NONE) {
    return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_ASKED, .detail = {}, .bytes = {}};
  }
  if (deleted_) {
    return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_POSSIBLE,
                        .detail = "the files have been deleted",
                        .bytes = {}};
  }
  return VerifyFiles(setup_, data_, ExpectationList::Of(files_), context);
}

}  // namespace

MadeWorkload MakeFiles(const v1::Workload& spec, const Setup& setup) {
  const v1::FilesWorkload& files = spec.files();
  if (files.clients() > files.files()) {
    return Fail(Errc::kInvalidArgument,
                fmt::format("{} clients for {} files: each client needs a file of its own",
                            files.clients(), files.files()));
  }
  const Bytes piece = PieceOf(Bytes(files.size()));
  const MemoryNeed need{
      .clients = files.clients(),
      .block = Bytes(files.size()),
      .block_field = "size",
      .buffers = FeedShape::For(piece, files.clients(), setup.target.cpu_count).memory(),
      .kind_count = AllSteps()[0].kinds.size(),
  };
  if (Result<void> fits = CheckMemory(setup, need); !fits) return std::unexpected(fits.error());
  return std::make_unique<Files>(files, setup);
}

}  // namespace labrack::workload
