// What the end-to-end tests of worker and agent share: directories that go away, processes that are
// waited for, small specifications, and what a spool says.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "labrack/v1/fleet.pb.h"
#include "labrack/v1/plan.pb.h"
#include "storage/base/clock.h"
#include "tests/e2e/wait_until.h"

namespace labrack::e2e {

class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A process with its output in a file. Killed and reaped when it goes out of scope.
class Process {
 public:
  Process(std::vector<std::string> words, const std::filesystem::path& output);
  ~Process();
  Process(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  void CloseInput();
  // Exit code, or 128 + signal; nullopt when it takes longer.
  std::optional<int> Wait(Nanoseconds longest);

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::optional<int> exit_;
};

std::string Binary(const std::string& name);
std::string ReadText(const std::filesystem::path& file);

// On the file system of the state directory; workload `pages` or `stream`.
v1::AssignmentSpec SyncPagesOnDirectory(const std::string& id, std::uint64_t epoch,
                                        Nanoseconds duration);
v1::AssignmentSpec StreamOnDirectory(const std::string& id, std::uint64_t epoch);
// The same on an ext4 of its own, 64 MiB on one disk.
v1::AssignmentSpec OnExt4(v1::AssignmentSpec spec);

std::vector<v1::EventRecord> ReadSpool(const std::filesystem::path& trial,
                                       const v1::AssignmentSpec& spec);
const v1::AssignmentResult* FindResult(const std::vector<v1::EventRecord>& records);
bool HasBegun(const std::vector<v1::EventRecord>& records, v1::PhaseKind phase);
std::uint64_t CountOf(const v1::AssignmentResult& result, const std::string& operation);

// Files below a directory, relative, sorted.
std::vector<std::string> FilesBelow(const std::filesystem::path& directory);
// Processes whose command line holds the text.
std::vector<pid_t> ProcessesWith(const std::string& text);

}  // namespace labrack::e2e
