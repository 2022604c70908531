#include "proto/fio/fio_job.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

namespace labrack::fio {
namespace {

// Options whose value names a file or directory. fio would take them from anywhere on the host, and
// write to some of them: only names within the stack's directory are let through.
constexpr std::array<std::string_view, 14> kPathOptions{
    "directory",   "donorname",      "filename",        "filename_format",    "mountpoint",
    "opendir",     "read_iolog",     "replay_redirect", "write_bw_log",       "write_hist_log",
    "write_iolog", "write_iops_log", "write_lat_log",   "merge_blktrace_file"};

// Options that make fio run a command.
constexpr std::array<std::string_view, 3> kCommandOptions{"exec_prerun", "exec_postrun", "program"};

// Options that change the host, or bring options of their own.
constexpr std::array<std::string_view, 5> kHostOptions{"cgroup", "ioscheduler", "lockmem",
                                                       "prioclass", "profile"};

// Engines that work on named files and on nothing else. The others reach hosts (net, nbd, rbd,
// rados, gfapi, http), bare devices (sg, mtd, dev-dax, io_uring_cmd) or run what they are told.
constexpr std::array<std::string_view, 17> kFileEngines{
    "cpuio",    "falloc",  "filecreate", "filedelete", "filestat", "ftruncate",
    "io_uring", "libaio",  "mmap",       "null",       "posixaio", "psync",
    "pvsync",   "pvsync2", "splice",     "sync",       "vsync"};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// fio cuts a comment off wherever it begins in a line.
std::string_view WithoutComment(std::string_view line) {
  return line.substr(0, std::min(line.find(';'), line.find('#')));
}

// Whether a path, or one of the paths separated by ":", may lead out of the stack's directory. An
// environment variable may hold anything.
bool LeavesDirectory(std::string_view value) {
  if (value.find('$') != std::string_view::npos) return true;
  while (true) {
    const std::size_t colon = value.find(':');
    const std::string_view path = Trim(value.substr(0, colon));
    if (path.starts_with('/') || path == ".." || path.starts_with("../") || path.ends_with("/..") ||
        path.find("/../") != std::string_view::npos) {
      return true;
    }
    if (colon == std::string_view::npos) return false;
    value.remove_prefix(colon + 1);
  }
}

class Reader {
 public:
  FioJobFile Read(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ReadLine(Trim(WithoutComment(text.substr(0, end))), ++number);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    CloseSection();
    if (file_.jobs.empty() && file_.problems.empty()) {
      AddProblem(0, "the fio job has no job section",
                 "write a section such as `[randread]` above the options of the job");
    }
    CheckNames();
    return std::move(file_);
  }

 private:
  void ReadLine(std::string_view line, std::size_t number) {
    if (line.empty()) return;
    if (line.front() == '[') return ReadSection(line, number);
    if (line == "include" || line.starts_with("include ") || line.starts_with("include\t")) {
      return AddProblem(number, "fio's `include` does not reach files of the command line",
                        "put the text of the included file in its place");
    }
    const std::size_t equals = line.find('=');
    FioOption option{std::string(Trim(line.substr(0, equals))), std::string(), number};
    if (equals != std::string_view::npos) option.value = Trim(line.substr(equals + 1));
    if (!in_global_ && !in_job_) {
      return AddProblem(number,
                        "option `" + option.key + "` of the fio job is outside of a section",
                        "write a section such as `[randread]` above it");
    }
    CheckOption(option);
    (in_global_ ? global_ : job_.options).push_back(std::move(option));
  }

  void ReadSection(std::string_view line, std::size_t number) {
    CloseSection();
    if (line.size() < 3 || line.back() != ']') {
      return AddProblem(number, "`" + std::string(line) + "` of the fio job is no section",
                        "write the job's name in brackets, as `[randread]`");
    }
    const std::string_view name = line.substr(1, line.size() - 2);
    in_global_ = name.starts_with("global");  // as fio has it: [globals] is one too
    if (in_global_) return;
    in_job_ = true;
    CheckName(name, number);
    job_ = FioJob{std::string(name), number, global_};
    globals_count_ = global_.size();
  }

  void CloseSection() {
    if (in_job_) {
      // `name=` in the job itself is what fio's results carry; in [global] it has no effect.
      for (std::size_t i = globals_count_; i < job_.options.size(); ++i) {
        if (job_.options[i].key == "name") job_.name = job_.options[i].value;
      }
      file_.jobs.push_back(std::move(job_));
    }
    job_ = {};
    in_job_ = in_global_ = false;
  }

  // A job without `filename=` works on files that are named after it.
  void CheckName(std::string_view name, std::size_t line) {
    if (name.find_first_of("/$") == std::string_view::npos) return;
    AddProblem(line,
               "job `" + std::string(name) +
                   "` of the fio job could leave the stack's directory: fio names files after it",
               "name the job without `/` and `$`, and say with `filename=` where it works");
  }

  void CheckOption(const FioOption& option) {
    const auto is = [&](std::string_view key) { return option.key == key; };
    if (is("name")) CheckName(option.value, option.line);
    const std::string text = "`" + option.key + "=" + option.value + "`";
    if (std::ranges::any_of(kPathOptions, is) && LeavesDirectory(option.value)) {
      AddProblem(option.line, text + " of the fio job would leave the stack's directory",
                 "name files relative to the stack, or leave `" + option.key + "` out");
    }
    // Memory that fio maps from a file is written to.
    if ((is("mem") || is("iomem")) && option.value.find(":/") != std::string::npos) {
      AddProblem(option.line, text + " of the fio job would write outside of the stack's directory",
                 "use `" + option.key + "=malloc`");
    }
    // Values with one of fio's keywords ($ncpus) go to `echo '...' | bc`.
    const bool value_runs_commands = option.value.find('$') != std::string::npos &&
                                     option.value.find_first_of("'`") != std::string::npos;
    if (std::ranges::any_of(kCommandOptions, is) || value_runs_commands) {
      file_.commands.push_back({option.line, text + " of the fio job runs a command", ""});
    }
    // An engine whose name is a path is a shared library that fio loads.
    const bool engine_leaves =
        is("ioengine") && std::ranges::find(kFileEngines, option.value) == kFileEngines.end();
    if (engine_leaves || std::ranges::any_of(kHostOptions, is)) {
      file_.commands.push_back(
          {option.line, text + " of the fio job reaches beyond its files", ""});
    }
  }

  void CheckNames() {
    std::set<std::string> seen;
    for (const FioJob& job : file_.jobs) {
      if (seen.insert(job.name).second) continue;
      AddProblem(job.line, "the fio job has two jobs named `" + job.name + "`",
                 "give each job a name of its own: results are told apart by it");
    }
  }

  void AddProblem(std::size_t line, std::string message, std::string help) {
    file_.problems.push_back({line, std::move(message), std::move(help)});
  }

  FioJobFile file_;
  std::vector<FioOption> global_;
  FioJob job_;
  std::size_t globals_count_ = 0;
  bool in_global_ = false;
  bool in_job_ = false;
};

// The digits at the front; the rest stays in `text`.
std::optional<std::uint64_t> TakeNumber(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

const std::string* FioJob::Find(std::string_view key) const {
  for (auto option = options.rbegin(); option != options.rend(); ++option) {
    if (option->key == key) return &option->value;
  }
  return nullptr;
}

FioJobFile ParseFioJob(std::string_view text) { return Reader().Read(text); }

std::optional<Bytes> ParseFioSize(std::string_view text) {
  text = Trim(text);
  const std::optional<std::uint64_t> number = TakeNumber(text);
  if (!number) return std::nullopt;
  std::string unit;
  for (char c : text) unit += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (unit.ends_with("ib")) unit.resize(unit.size() - 2);
  if (unit.ends_with("b")) unit.resize(unit.size() - 1);
  if (unit.size() > 1) return std::nullopt;
  const std::size_t power = unit.empty() ? 0 : std::string_view("kmgtp").find(unit) + 1;
  if (!unit.empty() && power == 0) return std::nullopt;  // npos + 1
  const unsigned shift = static_cast<unsigned>(10 * power);
  if (*number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return Bytes(*number << shift);
}

std::optional<Nanoseconds> ParseFioTime(std::string_view text) {
  text = Trim(text);
  const std::optional<std::uint64_t> number = TakeNumber(text);
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 10> kUnits{{
      {"", 1'000'000'000},
      {"s", 1'000'000'000},
      {"sec", 1'000'000'000},
      {"ms", 1'000'000},
      {"msec", 1'000'000},
      {"us", 1'000},
      {"usec", 1'000},
      {"m", 60'000'000'000},
      {"h", 3'600'000'000'000},
      {"d", 86'400'000'000'000},
  }};
  if (!number) return std::nullopt;
  for (const auto& [unit, scale] : kUnits) {
    if (text != unit) continue;
    if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / scale))
      break;
    return Nanoseconds(static_cast<std::int64_t>(*number) * scale);
  }
  return std::nullopt;
}

}  // namespace labrack::fio
