// fio's job files, read as far as a plan needs it: which jobs there are, how much they write and
// for how long, and whether they would leave the stack's directory or run commands. fio itself
// reads the file again on the host; what we do not know here we leave to it.
//
//   [global]            options for the jobs below
//   bs=4k
//   [rand]              a job
//   rw=randread
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"

namespace labrack::fio {

struct FioOption {
  std::string key;
  std::string value;     // empty for an option that is only named
  std::size_t line = 0;  // in the job text, from 1
};

struct FioJob {
  std::string name;
  std::size_t line = 0;
  std::vector<FioOption> options;  // with those of [global] before it; the last of a key counts

  // The value of the option, nullptr when it is not given. An option that is only named has "".
  const std::string* Find(std::string_view key) const;
};

// What is wrong in the job text, or not ours to allow.
struct FioFinding {
  std::size_t line = 0;
  std::string message;
  std::string help;
};

struct FioJobFile {
  std::vector<FioJob> jobs;
  // The file cannot be run anywhere: not a job file, a section twice, a path outside of the stack.
  std::vector<FioFinding> problems;
  // It runs commands, or reaches beyond its files in another way: only for agents whose
  // configuration allows commands.
  std::vector<FioFinding> commands;
};

FioJobFile ParseFioJob(std::string_view text);

// "64m" -> 64 MiB, as fio reads it with kb_base=1024; nothing for "20%" and what is no size.
std::optional<Bytes> ParseFioSize(std::string_view text);
// "30", "30s", "500ms", "2m": fio's times, seconds without a unit.
std::optional<Nanoseconds> ParseFioTime(std::string_view text);

}  // namespace labrack::fio
