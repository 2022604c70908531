#include "agent/workload/file_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "storage/base/units.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// Some file systems (ZFS) count blocks only when a transaction group has been written, so the check
// of allocated blocks is given time; and some count a little less than the size (tail packing).
constexpr Nanoseconds kAllocationWait = std::chrono::seconds(10);
constexpr Nanoseconds kAllocationPoll = std::chrono::milliseconds(100);
constexpr std::uint64_t kAllocatedPercentMin = 90;
// Files this small may live in their inodes.
constexpr Bytes kInlineMax = 4_KiB;

Error Cancelled() { return Error(Errc::kCancelled, "cancelled"); }

Task<Result<void>> WriteFile(fs::FileSystem* file_system, const Data* data, FileSpec file,
                             AlignedBuffer* buffer, ByteProgress* progress) {
  Result<std::unique_ptr<fs::File>> opened = co_await file_system->Open(
      file.path, {.access = fs::Access::kWrite, .create = true, .exclusive = true});
  if (!opened) co_return std::unexpected(opened.error());
  fs::File& handle = **opened;
  Offset at;
  while (at.value() < file.size.count()) {
    if (progress->cancelled()) co_return std::unexpected(Cancelled());
    const Bytes length = std::min(Bytes(buffer->size()), file.size - Bytes(at.value()));
    const MutableView view = buffer->first(length);
    data->Fill(file.id, at, Generation{0}, view);
    Result<void> written = co_await handle.Write({}, at, view);
    if (!written) co_return written;
    at += length;
    progress->Add(length);
  }
  // Small files are made durable all at once (SyncAll); with an fsync each, lay-out would take
  // hours.
  if (file.size >= kWorkBlock) {
    Result<void> synced = co_await handle.Sync({}, fs::SyncKind::kFull);
    if (!synced) co_return synced;
  }
  Result<void> closed = co_await handle.Close();
  co_return closed;
}

// Allocated blocks, waited for as long as they grow late.
Task<Result<void>> WaitForBlocks(const Setup* setup, FileSpec file, bool may_be_sparse) {
  const TimePoint give_up = setup->env->Now() + kAllocationWait;
  while (true) {
    Result<void> checked = co_await CheckLaidOut(&setup->file_system(), file, may_be_sparse);
    if (checked || setup->env->Now() >= give_up) co_return checked;
    std::ignore = co_await setup->env->SleepUntil(setup->env->Now() + kAllocationPoll, nullptr);
  }
}

Task<Result<LayOutReport>> LayOut(const Setup* setup, const Data* data, const FileList* files,
                                  Bytes total, ByteProgress* progress) {
  fs::FileSystem& file_system = setup->file_system();
  Result<fs::SpaceStatus> space = co_await file_system.Space();
  if (!space) co_return std::unexpected(space.error());
  if (space->free < total) {
    co_return Fail(
        Errc::kNoSpace, setup->target.directory.native(),
        fmt::format("the workload's files take {}, but only {} of {} are free; make the "
                    "files smaller or the disks larger",
                    FormatBytes(total), FormatBytes(space->free), FormatBytes(space->total)));
  }
  AlignedBuffer buffer(kWorkBlock);
  for (std::uint64_t i = 0; i < files->count; ++i) {
    Result<void> written = co_await WriteFile(&file_system, data, files->at(i), &buffer, progress);
    if (!written) co_return std::unexpected(written.error());
  }
  Result<void> synced = co_await file_system.SyncAll();
  if (!synced) co_return std::unexpected(synced.error());
  const bool may_be_sparse = data->kind() == v1::DATA_KIND_ZEROS;
  for (std::uint64_t i = 0; i < files->count; ++i) {
    Result<void> checked = co_await WaitForBlocks(setup, files->at(i), may_be_sparse);
    if (!checked) co_return std::unexpected(checked.error());
  }
  co_return LayOutReport{.written = total};
}

using Damage = std::optional<std::string>;

// The first difference within one buffer that begins on a page.
Damage CompareBuffer(const Data& data, const Expectation& expected, Offset at, ConstView view) {
  for (std::size_t done = 0; done < view.size();) {
    const ConstView page = view.subspan(done, std::min(expected.page.size(), view.size() - done));
    const Offset page_at = at + Bytes(done);
    const std::uint64_t number = page_at.value() / expected.page.count();
    const Generation generation = expected.generation ? expected.generation(number) : Generation{0};
    if (const std::optional<Mismatch> wrong =
            data.Compare(expected.file.id, page_at, generation, page)) {
      return fmt::format("{} at byte {}: {}", expected.file.path, wrong->at.value(), wrong->what);
    }
    done += page.size();
  }
  return std::nullopt;
}

Task<Result<Damage>> CompareFile(fs::FileSystem* file_system, const Data* data,
                                 const Expectation* expected, AlignedBuffer* buffer,
                                 ByteProgress* progress) {
  const FileSpec& file = expected->file;
  Result<std::unique_ptr<fs::File>> opened = co_await file_system->Open(file.path, {});
  if (!opened && opened.error().code() == Errc::kNotFound) {
    co_return Damage(file.path + ": the file is gone");
  }
  if (!opened) co_return std::unexpected(opened.error());
  fs::File& handle = **opened;
  Result<fs::FileStatus> status = co_await handle.Status();
  if (!status) co_return std::unexpected(status.error());
  if (status->size != file.size) {
    co_return Damage(fmt::format("{}: the file has {} bytes, expected {}", file.path,
                                 status->size.count(), file.size.count()));
  }
  // The medium is what is to be compared; a file system that cannot drop its cache is read as it
  // is.
  std::ignore = co_await handle.Advise(fs::Advice::kDropCache);
  Offset at;
  while (at.value() < file.size.count()) {
    if (progress->cancelled()) co_return std::unexpected(Cancelled());
    const Bytes length = std::min(Bytes(buffer->size()), file.size - Bytes(at.value()));
    const MutableView view = buffer->first(length);
    Result<void> read = co_await handle.ReadFull({}, at, view);
    if (!read) co_return std::unexpected(read.error());
    if (Damage damage = CompareBuffer(*data, *expected, at, view)) co_return damage;
    at += length;
    progress->Add(length);
  }
  co_return Damage();
}

Task<Result<VerifyReport>> Verify(const Setup* setup, const Data* data,
                                  const ExpectationList* expectations, ByteProgress* progress) {
  std::optional<AlignedBuffer> buffer;
  for (std::uint64_t i = 0; i < expectations->count; ++i) {
    const Expectation expected = expectations->at(i);
    const Bytes block = std::max<std::uint64_t>(1, kWorkBlock / expected.page) * expected.page;
    if (!buffer || buffer->size() != block.size()) buffer.emplace(block);
    Result<Damage> damage =
        co_await CompareFile(&setup->file_system(), data, &expected, &*buffer, progress);
    if (!damage) co_return std::unexpected(damage.error());
    if (!*damage) continue;
    co_return VerifyReport{
        .outcome = v1::VERIFY_OUTCOME_MISMATCHED, .detail = **damage, .bytes = progress->done()};
  }
  co_return VerifyReport{
      .outcome = v1::VERIFY_OUTCOME_MATCHED,
      .detail = fmt::format("{} in {} file{} read back and compared", FormatBytes(progress->done()),
                            expectations->count, expectations->count == 1 ? "" : "s"),
      .bytes = progress->done()};
}

v1::Warning MakeWarning(const char* code, std::string message, std::string cure) {
  v1::Warning warning;
  warning.set_code(code);
  warning.set_message(std::move(message));
  warning.set_cure(std::move(cure));
  return warning;
}

}  // namespace

void ByteProgress::Add(Bytes bytes) {
  done_ += bytes;
  if (context_.progress == nullptr) return;
  const double fraction = expected_.count() == 0 ? 0
                                                 : static_cast<double>(done_.count()) /
                                                       static_cast<double>(expected_.count());
  context_.progress->Set(0, done_.count(), fraction);
}

Task<Result<void>> CheckLaidOut(fs::FileSystem* file_system, FileSpec file, bool may_be_sparse) {
  Result<fs::FileStatus> status = co_await file_system->Status(file.path);
  if (!status) co_return std::unexpected(status.error());
  if (status->size != file.size) {
    co_return Fail(Errc::kDataMismatch, file.path,
                   fmt::format("laid out with {} bytes, expected {}", status->size.count(),
                               file.size.count()));
  }
  const bool small = file.size <= kInlineMax;
  const std::uint64_t needed = file.size.count() / 100 * kAllocatedPercentMin;
  if (!may_be_sparse && !small && status->allocated.count() < needed) {
    co_return Fail(Errc::kDataMismatch, file.path,
                   fmt::format("laid out with {} bytes, but only {} are allocated on the medium: "
                               "measuring it would measure holes",
                               status->size.count(), status->allocated.count()));
  }
  co_return Result<void>();
}

FileList FileList::Of(std::vector<FileSpec> files) {
  const std::uint64_t count = files.size();
  return {.count = count,
          .at = [files = std::move(files)](std::uint64_t number) { return files[number]; }};
}

ExpectationList ExpectationList::Of(const FileList& files) {
  return {.count = files.count, .at = [at = files.at](std::uint64_t number) {
            return Expectation{.file = at(number), .page = kWorkBlock, .generation = {}};
          }};
}

ExpectationList ExpectationList::Of(Expectation one) {
  return {.count = 1, .at = [one = std::move(one)](std::uint64_t) { return one; }};
}

Result<LayOutReport> LayOutFiles(const Setup& setup, const Data& data, const FileList& files,
                                 const StepContext& context) {
  Bytes total;
  for (std::uint64_t i = 0; i < files.count; ++i) total += files.at(i).size;
  ByteProgress progress(context, total);
  return RunOne(*setup.launcher, LayOut(&setup, &data, &files, total, &progress));
}

Result<VerifyReport> VerifyFiles(const Setup& setup, const Data& data,
                                 const ExpectationList& expectations, const StepContext& context) {
  Bytes total;
  for (std::uint64_t i = 0; i < expectations.count; ++i) total += expectations.at(i).file.size;
  ByteProgress progress(context, total);
  return RunOne(*setup.launcher, Verify(&setup, &data, &expectations, &progress));
}

v1::Warning WarnCachedFile(Bytes files, Bytes memory) {
  return MakeWarning("LW102",
                     fmt::format("reads may come from memory: {} of files, {} of memory",
                                 FormatBytes(files), FormatBytes(memory)),
                     "set `direct: true` or `cache: cold`, or make the files larger than memory");
}

v1::Warning WarnNoSync(const std::string& cure) {
  return MakeWarning(
      "LW103", "writes were not made durable: what was measured is memory as much as disks", cure);
}

v1::Warning WarnZeros() {
  return MakeWarning("LW104",
                     "zeros were written: stacks that compress or leave holes look faster than "
                     "they are with real data",
                     "set `data: random`");
}

v1::Warning WarnClients(std::uint32_t clients, std::uint32_t cpu_count) {
  return MakeWarning("LW105",
                     fmt::format("{} clients on {} processors: latencies hold time spent waiting "
                                 "for a processor",
                                 clients, cpu_count),
                     "use fewer clients, or read the latencies with care");
}

v1::Warning WarnBehindSchedule(double offered, double achieved, double not_begun) {
  std::string message = fmt::format("the load was to be {} op/s, but {} op/s were achieved",
                                    FormatCount(offered), FormatCount(achieved));
  if (not_begun > 0) {
    message += fmt::format(
        "; {} operations had not begun long after the end, and their response "
        "times are at least as recorded",
        FormatCount(not_begun));
  }
  return MakeWarning("LW106", std::move(message),
                     "lower `rate`, or add clients where the stack has capacity left");
}

v1::Warning WarnDataWaits(double share) {
  return MakeWarning("LW107",
                     fmt::format("clients spent {:.0f} % of the measured time waiting for the data "
                                 "that they wrote to be made: the stack could be faster by that",
                                 100 * share),
                     "give each client two processors, so that its data is made beside it, or "
                     "compare it with stacks of a like share only");
}

Result<void> CheckMemory(const Setup& setup, const MemoryNeed& need) {
  constexpr std::uint64_t kSharesKept = 10;  // one of them stays for everybody else
  const Bytes available = setup.target.memory_available;
  if (available.count() == 0) return {};
  // Service and response times of each kind of operation.
  const Bytes counts = Bytes(2 * need.kind_count * Histogram::kBucketCount * sizeof(std::uint64_t));
  const Bytes needed = (need.buffers + counts) * need.clients + need.shared;
  const Bytes usable = available - available / kSharesKept;
  if (needed <= usable) return {};
  return Fail(
      Errc::kExhausted, "memory",
      fmt::format("{} of `{}` with `{}` of {} take {} for buffers and counts, and {} can be "
                  "had; make one of the two smaller",
                  need.clients, need.clients_field, need.block_field, FormatBytesExact(need.block),
                  FormatBytes(needed), FormatBytes(usable)));
}

Result<void> CheckMultiple(const std::string& what, Bytes value, Bytes unit,
                           const std::string& why) {
  if (IsAligned(value, unit)) return {};
  return Fail(Errc::kInvalidArgument,
              fmt::format("{} is {}, which is no multiple of {}; {}", what, FormatBytesExact(value),
                          FormatBytesExact(unit), why));
}

}  // namespace labrack::workload
