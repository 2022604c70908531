#include "agent/inventory/tools.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <tuple>

#include "agent/exec/program.h"
#include "agent/exec/run.h"

namespace labrack::inventory {
namespace {

constexpr Nanoseconds kVersionTimeout = std::chrono::seconds(5);
constexpr std::size_t kVersionMax = 120;

struct KnownTool {
  const char* name;
  const char* version_word;  // that makes it tell its version
};
constexpr std::array<KnownTool, 8> kTools = {{{"mkfs.ext4", "-V"},
                                              {"mkfs.xfs", "-V"},
                                              {"mkfs.btrfs", "-V"},
                                              {"zpool", "version"},
                                              {"zfs", "version"},
                                              {"fio", "--version"},
                                              {"dd", "--version"},
                                              {"cp", "--version"}}};

// A tool that fails or answers with its usage has no version.
std::string AskVersion(const std::string& path, const char* word) {
  exec::Command command;
  command.words = {path, word};
  command.timeout = kVersionTimeout;
  const Result<exec::Outcome> outcome = exec::Run(command);
  if (!outcome || !outcome->ok()) return "";
  return VersionFrom(outcome->output.empty() ? outcome->errors : outcome->output);
}

// Versions by file. A tool that is upgraded gets another inode or time.
class VersionCache {
 public:
  std::string Get(const std::string& path, const char* word) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) return "";
    const Key key(path, status.st_ino, status.st_mtim.tv_sec);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = versions_.find(key);
    if (known != versions_.end()) return known->second;
    return versions_[key] = AskVersion(path, word);
  }

 private:
  using Key = std::tuple<std::string, ino_t, time_t>;
  std::mutex mutex_;
  std::map<Key, std::string> versions_;
};

VersionCache& Versions() {
  static VersionCache* const cache = new VersionCache;  // lives as long as the process
  return *cache;
}

}  // namespace

std::string VersionFrom(std::string_view output) {
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = output.substr(0, end);
    if (line.find_first_of("0123456789") != std::string_view::npos) {
      return std::string(line.substr(0, kVersionMax));
    }
    output.remove_prefix(std::min(end + 1, output.size()));
  }
  return "";
}

std::vector<v1::Tool> FindTools() {
  std::vector<v1::Tool> tools;
  for (const KnownTool& known : kTools) {
    const Result<std::filesystem::path> path = exec::FindProgram(known.name);
    if (!path) continue;
    v1::Tool tool;
    tool.set_name(known.name);
    tool.set_path(path->string());
    tool.set_version(Versions().Get(path->string(), known.version_word));
    tools.push_back(std::move(tool));
  }
  return tools;
}

}  // namespace labrack::inventory
