// What is to be run, and how a process ended. Words are handed to the program as they are: there is
// no shell anywhere.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/runtime/env.h"

namespace labrack::exec {

struct Command {
  // words[0] is the program: an absolute path, or a name that FindProgram looks for.
  std::vector<std::string> words;
  std::filesystem::path directory;  // working directory; empty: the caller's own
  // Beside PATH, LANG=C and HOME, which every process gets, and the mark of the trial (family.h).
  // Nothing else is inherited.
  std::map<std::string, std::string> environment;
  Nanoseconds timeout{0};  // of Run; must be set
  const runtime::CancelToken* cancel = nullptr;
  // Of each output stream the first and the last bytes are kept; what lies between is read and
  // dropped.
  Bytes output_head_max = 16_MiB;
  Bytes output_tail_max = 1_MiB;
};

struct ExitStatus {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;      // 0 when it exited by itself
  v1::CpuUse cpu;      // of the process and of those of its descendants that were waited for

  bool ok() const { return exit_code == 0; }
  // "exit code 1", "signal 9 (Killed)".
  std::string Describe() const;
};

}  // namespace labrack::exec
