// copy: a file laid out before is copied to a new one beside it, as cp and dd do.
#include <cerrno>

#include <fmt/format.h>

#include "agent/workload/workloads.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// "copy" is one block read and written; with read_write its two parts stand beside it.
enum Kind : std::size_t { kCopy = 0, kFsync = 1, kRead = 2, kWrite = 3 };

struct CopyWork {
  fs::FileSystem* file_system = nullptr;
  fs::File* from = nullptr;
  fs::File* to = nullptr;
  ConstView mapped;  // the whole source; with mmap
  Bytes size;
  Bytes block;
  bool sync = false;
};

std::string At(Offset at) { return fmt::format("the copy at byte {}", at.value()); }

Task<Result<void>> CopyByReadWrite(Client* client, const CopyWork* work) {
  AlignedBuffer buffer(work->block);
  for (Offset at; at.value() < work->size.count(); at += work->block) {
    const MutableView view = buffer.first(std::min(work->block, work->size - Bytes(at.value())));
    if (!client->Begin()) co_return Result<void>();
    Result<void> read = co_await work->from->ReadFull({}, at, view);
    if (!read) co_return client->Failed(kRead, At(at), read.error());
    client->Part(kRead, Bytes(view.size()));
    Result<void> written = co_await work->to->Write({}, at, view);
    if (!written) co_return client->Failed(kWrite, At(at), written.error());
    client->Part(kWrite, Bytes(view.size()));
    client->EndAtPart(kCopy, Bytes(view.size()));
  }
  co_return Result<void>();
}

Task<Result<void>> CopyByRange(Client* client, const CopyWork* work) {
  for (Offset at; at.value() < work->size.count(); at += work->block) {
    const Bytes length = std::min(work->block, work->size - Bytes(at.value()));
    if (!client->Begin()) co_return Result<void>();
    Result<Bytes> copied =
        co_await work->file_system->CopyRange(*work->from, at, *work->to, at, length);
    if (!copied) co_return client->Failed(kCopy, At(at), copied.error());
    if (*copied != length) {
      const Error error(Errc::kIo, fmt::format("only {} of {} bytes were copied", copied->count(),
                                               length.count()));
      co_return client->Failed(kCopy, At(at), error);
    }
    client->End(kCopy, length);
  }
  co_return Result<void>();
}

// A page of the source that cannot be brought in gives no signal here, since only the kernel
// reaches into the mapping: its write says EFAULT, which blames nobody. A plain read of the same
// bytes says what is wrong with the source (EIO, or that it has become shorter).
Task<Result<void>> WhyNotCopied(const CopyWork* work, Offset at, Bytes length, Error written) {
  if (written.system_errno() != EFAULT) co_return std::unexpected(std::move(written));
  AlignedBuffer buffer(length);
  Result<void> read = co_await work->from->ReadFull({}, at, buffer.first(length));
  if (!read) co_return read;
  co_return std::unexpected(std::move(written));
}

Task<Result<void>> CopyByMapping(Client* client, const CopyWork* work) {
  for (Offset at; at.value() < work->size.count(); at += work->block) {
    const Bytes length = std::min(work->block, work->size - Bytes(at.value()));
    if (!client->Begin()) co_return Result<void>();
    const ConstView view = work->mapped.subspan(at.value(), length.size());
    Result<void> written = co_await work->to->Write({}, at, view);
    if (!written) {
      Result<void> why = co_await WhyNotCopied(work, at, length, written.error());
      co_return client->Failed(kCopy, At(at), why.error());
    }
    client->End(kCopy, length);
  }
  co_return Result<void>();
}

Task<Result<void>> RunCopy(Client* client, const CopyWork* work, v1::CopyMethod method) {
  Result<void> copied;
  if (method == v1::COPY_METHOD_COPY_FILE_RANGE) {
    copied = co_await CopyByRange(client, work);
  } else if (method == v1::COPY_METHOD_MMAP) {
    copied = co_await CopyByMapping(client, work);
  } else {
    copied = co_await CopyByReadWrite(client, work);
  }
  if (!copied || !work->sync || !client->Begin()) co_return copied;
  Result<void> synced = co_await work->to->Sync({}, fs::SyncKind::kFull);
  if (!synced) co_return client->Failed(kFsync, "the copy", synced.error());
  client->End(kFsync, Bytes(0));
  co_return Result<void>();
}

class Copy final : public FileWorkload {
 public:
  Copy(const v1::CopyWorkload& spec, Setup setup)
      : FileWorkload(setup, spec.data()),
        spec_(spec),
        from_{"copy-from.dat", FileId{0}, Bytes(spec.file())} {
    if (spec.cache() == v1::CACHE_WARM) WarnIfCached(Bytes(spec.file()));
    if (!spec.sync()) Warn(WarnNoSync("set `sync: true`"));
  }

  std::vector<StepInfo> Steps() const override { return {{.name = "copy", .has_warm_up = false}}; }
  Result<LayOutReport> LayOut(const StepContext& context) override {
    return LayOutFiles(setup_, data_, FileList::Of({from_}), context);
  }
  bool WantsColdCache(std::size_t) const override { return spec_.cache() == v1::CACHE_COLD; }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  bool ReadsBack() const override { return spec_.verify() != v1::VERIFY_NONE; }
  Result<VerifyReport> Verify(const StepContext& context) override {
    if (spec_.verify() == v1::VERIFY_NONE) {
      return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_ASKED, .detail = {}, .bytes = {}};
    }
    // The copy holds what the source was made of, so it is compared with that, not with the source.
    FileSpec to = from_;
    to.path = kTo;
    return VerifyFiles(setup_, data_, ExpectationList::Of(FileList::Of({to})), context);
  }

 private:
  static constexpr const char* kTo = "copy-to.dat";
  v1::CopyWorkload spec_;
  FileSpec from_;
};

StepOutcome Copy::RunStep(std::size_t, const StepContext& context) {
  Result<std::unique_ptr<fs::File>> from = OpenFile(from_.path, {});
  if (!from) return Stillborn(from.error());
  Result<std::unique_ptr<fs::File>> to =
      OpenFile(kTo, {.access = fs::Access::kWrite, .create = true, .exclusive = true});
  if (!to) return Stillborn(to.error());
  std::unique_ptr<fs::FileSystem::Mapping> mapping;
  if (spec_.method() == v1::COPY_METHOD_MMAP) {
    Result<std::unique_ptr<fs::FileSystem::Mapping>> mapped =
        RunOne(*setup_.launcher, setup_.file_system().Map(**from));
    if (!mapped) return Stillborn(mapped.error());
    mapping = *std::move(mapped);
    if (mapping->view().size() != spec_.file()) {
      return Stillborn(Error(Errc::kDataMismatch, from_.path, "its size has changed"));
    }
  }
  const CopyWork work{.file_system = &setup_.file_system(),
                      .from = from->get(),
                      .to = to->get(),
                      .mapped = mapping ? mapping->view() : ConstView(),
                      .size = Bytes(spec_.file()),
                      .block = Bytes(spec_.block()),
                      .sync = spec_.sync()};
  StepPlan plan;
  plan.step = "copy";
  plan.primary = v1::PRIMARY_METRIC_BYTES_PER_SECOND;
  plan.kinds = {{.name = "copy", .moves = Moves::kCopies}, {.name = "fsync", .counted = false}};
  if (spec_.method() == v1::COPY_METHOD_READ_WRITE) {
    plan.kinds.push_back({.name = "read", .counted = false});
    plan.kinds.push_back({.name = "write", .counted = false});
  }
  plan.expected_operations = (spec_.file() + spec_.block() - 1) / spec_.block();
  return RunEngine(plan, context,
                   [&](Client& client) { return RunCopy(&client, &work, spec_.method()); });
}

}  // namespace

MadeWorkload MakeCopy(const v1::Workload& spec, const Setup& setup) {
  const Bytes block(spec.copy().block());
  const Result<void> fits = CheckMemory(setup, {.block = block, .buffers = block, .kind_count = 4});
  if (!fits) return std::unexpected(fits.error());
  return std::make_unique<Copy>(spec.copy(), setup);
}

}  // namespace labrack::workload
