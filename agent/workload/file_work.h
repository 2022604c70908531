// What all workloads on files share: laying a file out, and reading one back to compare it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/workload/data.h"
#include "agent/workload/engine.h"
#include "agent/workload/workload.h"
#include "storage/base/aligned_buffer.h"

namespace labrack::workload {

// What every workload is made with.
struct Setup {
  Seed seed;
  Target target;
  runtime::Env* env = nullptr;
  runtime::Launcher* launcher = nullptr;  // never null

  fs::FileSystem& file_system() const { return *target.file_system; }
};

// A file of a workload.
struct FileSpec {
  std::string path;
  FileId id;
  Bytes size;
};

// The unit in which files are laid out and read back.
constexpr Bytes kWorkBlock = 1_MiB;

// Adds up the bytes of a lay-out or verification for the live view.
class ByteProgress {
 public:
  ByteProgress(const StepContext& context, Bytes expected)
      : context_(context), expected_(expected) {}
  void Add(Bytes bytes);
  bool cancelled() const { return context_.cancel != nullptr && context_.cancel->cancelled(); }
  Bytes done() const { return done_; }

 private:
  const StepContext& context_;
  Bytes expected_;
  Bytes done_;
};

// Runs one coroutine to its end and gives its result.
namespace internal {
template <typename T>
runtime::Task<void> Store(runtime::Task<T> task, std::optional<T>* into) {
  T value = co_await std::move(task);
  into->emplace(std::move(value));
}
}  // namespace internal

template <typename T>
T RunOne(runtime::Launcher& launcher, runtime::Task<T> task) {
  std::optional<T> value;
  std::vector<runtime::Task<void>> tasks;
  tasks.push_back(internal::Store(std::move(task), &value));
  const Result<void> ran = launcher.RunAll(std::move(tasks));
  if (!ran) return std::unexpected(ran.error());
  return *std::move(value);
}

// Files by number, so that a hundred million of them take no memory.
struct FileList {
  std::uint64_t count = 0;
  std::function<FileSpec(std::uint64_t number)> at;

  static FileList Of(std::vector<FileSpec> files);
};

// Writes `files` (generation 0), makes them durable, and checks them on the medium: their size, and
// that nothing was left out (a sparse or missing file would be measured as a fast one). Errors:
// kNoSpace before anything is written, where they do not fit; kAlreadyExists.
Result<LayOutReport> LayOutFiles(const Setup& setup, const Data& data, const FileList& files,
                                 const StepContext& context);
// The check alone.
runtime::Task<Result<void>> CheckLaidOut(fs::FileSystem* file_system, FileSpec file,
                                         bool may_be_sparse);

// What belongs into a file: the generation of each page.
struct Expectation {
  FileSpec file;
  Bytes page;
  std::function<Generation(std::uint64_t page)> generation = {};  // empty: 0 everywhere
};

struct ExpectationList {
  std::uint64_t count = 0;
  std::function<Expectation(std::uint64_t number)> at;

  // Each file as it was laid out or written in one go: generation 0 everywhere.
  static ExpectationList Of(const FileList& files);
  static ExpectationList Of(Expectation one);
};

// Reads the files back, past what the page cache gives up, and compares every byte.
Result<VerifyReport> VerifyFiles(const Setup& setup, const Data& data,
                                 const ExpectationList& expectations, const StepContext& context);

// Warnings (v1::Warning) of results. LW101, reads from the cache, is the worker's: it has the
// device's counters.
v1::Warning WarnDataWaits(double share);                                            // LW107
v1::Warning WarnCachedFile(Bytes files, Bytes memory);                              // LW102
v1::Warning WarnNoSync(const std::string& cure);                                    // LW103
v1::Warning WarnZeros();                                                            // LW104
v1::Warning WarnClients(std::uint32_t clients, std::uint32_t cpu_count);            // LW105
v1::Warning WarnBehindSchedule(double offered, double achieved, double not_begun);  // LW106

// What clients take of the host's memory for the length of a step: their buffers, and what they
// count latencies in. The names are those of the fields that say how many and how large.
struct MemoryNeed {
  std::uint32_t clients = 1;
  std::string clients_field = "clients";
  Bytes block = {};
  std::string block_field = "block";
  Bytes buffers = {};          // of one client
  Bytes shared = {};           // of all
  std::size_t kind_count = 1;  // of operations
};
// kExhausted, with those fields, when it is more than the host has to spare.
Result<void> CheckMemory(const Setup& setup, const MemoryNeed& need);

// "block 4100B with direct I/O: ..." and the like: a field that contradicts another one.
Result<void> CheckMultiple(const std::string& what, Bytes value, Bytes unit,
                           const std::string& why);

}  // namespace labrack::workload
