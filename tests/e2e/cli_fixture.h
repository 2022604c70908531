// The binary `labrack` in a state directory of its own, in the foreground and in the background,
// and what a run can leave behind.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "agent/exec/child.h"
#include "agent/exec/run.h"
#include "storage/base/exit_codes.h"

namespace labrack {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

inline constexpr const char* kTiny = R"(playbook: tiny
stacks:
  left: {host: {dir: {}}}
  right: {host: {dir: {}}}
workloads:
  pages: {sync_pages: {size: 4KiB, file: 1MiB, duration: 500ms}}
trials: 4
)";

// Long enough to be interrupted in the middle of a measurement. As root it has loop devices and
// mounts to clean up.
inline constexpr const char* kLong = R"(playbook: long
disks: {count: 1, size: 64MiB}
stacks:
  ext4: {host: {ext4: {}}, if_unsupported: directory}
workloads:
  pages: {sync_pages: {size: 4KiB, file: 4MiB, duration: 60s}}
trials: 4
)";

inline std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline bool WaitUntil(Nanoseconds limit, const std::function<bool()>& is_so) {
  const TimePoint until = MonotonicClock().Now() + limit;
  while (!is_so()) {
    if (MonotonicClock().Now() >= until) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    std::string pattern = fs::temp_directory_path() / "labrack-cli-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~CliTest() override {
    EXPECT_THAT(OurProcesses(), ::testing::IsEmpty());
    fs::remove_all(directory_);
  }

  fs::path Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  fs::path StateDirectory() const { return directory_ / "state" / state_name_; }

  exec::Command Labrack(std::vector<std::string> words) const {
    exec::Command command;
    command.words = {std::string(LABRACK_BIN_DIR) + "/labrack"};
    command.words.insert(command.words.end(), words.begin(), words.end());
    command.directory = directory_;
    command.environment = {
        {"HOME", directory_}, {"XDG_STATE_HOME", directory_ / "state"}, {"USER", "tester"}};
    command.timeout = 120s;
    return command;
  }
  exec::Outcome Run(const std::vector<std::string>& words) const {
    const Result<exec::Outcome> outcome = exec::Run(Labrack(words));
    EXPECT_TRUE(outcome) << outcome.error().ToString();
    return outcome.value_or(exec::Outcome{});
  }

  // The same where the state directory cannot be written.
  exec::Outcome RunReadOnly(std::vector<std::string> words) const {
    exec::Command command = Labrack(std::move(words));
    if (geteuid() == 0) {  // whom permissions do not stop as long as it has its capabilities
      const std::vector<std::string> without = {"setpriv",
                                                "--bounding-set=-all",
                                                "--inh-caps=-all",
                                                "sh",
                                                "-c",
                                                "! touch \"$0\"/touched 2>/dev/null && exec \"$@\"",
                                                StateDirectory()};
      command.words.insert(command.words.begin(), without.begin(), without.end());
    }
    const auto permit = [&](fs::perm_options how) {
      const fs::path controller = fs::path(StateDirectory()) / "controller";
      std::vector<fs::path> paths = {StateDirectory(), controller};
      for (const fs::directory_entry& entry : fs::directory_iterator(controller)) {
        paths.push_back(entry.path());
      }
      for (const fs::path& path : paths) fs::permissions(path, fs::perms::owner_write, how);
    };
    permit(fs::perm_options::remove);
    const Result<exec::Outcome> outcome = exec::Run(command);
    permit(fs::perm_options::add);
    EXPECT_TRUE(outcome) << outcome.error().ToString();
    return outcome.value_or(exec::Outcome{});
  }

  // A labrack in the background, its output in files.
  struct Background {
    exec::Child child;
    fs::path output;
    fs::path errors;
  };
  Background Start(const std::string& name, const exec::Command& command, int input = -1) {
    const fs::path output = directory_ / (name + ".out");
    const fs::path errors = directory_ / (name + ".err");
    const Descriptor out(open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    const Descriptor err(open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    Result<exec::Child> child = exec::Child::Spawn(
        command, {.input_fd = input, .output_fd = out.get(), .errors_fd = err.get()});
    EXPECT_TRUE(child) << child.error().ToString();
    return {std::move(*child), output, errors};
  }
  static int ExitCodeOf(Background& background, Nanoseconds limit = 120s) {
    const Result<exec::ExitStatus> status =
        background.child.WaitUntil(MonotonicClock().Now() + limit);
    if (!status) {
      EXPECT_TRUE(background.child.KillGroup());
      ADD_FAILURE() << "still running: " << ReadAll(background.errors);
      return -1;
    }
    return status->exit_code;
  }

  // Command lines of processes that name our directory; labrack itself names it too.
  std::vector<std::string> OurProcesses() const {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      const std::string name = entry.path().filename();
      if (!std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; }))
        continue;
      std::string line = ReadAll(entry.path() / "cmdline");
      std::ranges::replace(line, '\0', ' ');
      if (line.contains(directory_.string())) found.push_back(name + ": " + line);
    }
    return found;
  }

  // What a trial can leave behind: processes, mounts, loop devices, files of disks and trials.
  std::vector<std::string> Leftovers() const {
    std::vector<std::string> found = OurProcesses();
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);) {
      if (line.contains(directory_.string())) found.push_back("mount: " + line);
    }
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/block", error)) {
      const std::string backing = ReadAll(entry.path() / "loop" / "backing_file");
      if (backing.contains(directory_.string())) found.push_back("loop: " + backing);
    }
    for (const auto& entry : fs::recursive_directory_iterator(StateDirectory(), error)) {
      const std::string folder = entry.path().parent_path().filename();
      if (folder == "disks" || folder == "mounts" || folder == "trials") {
        found.push_back("file: " + entry.path().string());
      }
    }
    return found;
  }

  // The id of the newest run, from the catalog.
  std::string NewestRun() const {
    const exec::Outcome listed = Run({"ls", "--json"});
    EXPECT_EQ(listed.exit_code, 0) << listed.errors;
    const nlohmann::json json = nlohmann::json::parse(listed.output, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << listed.output;
    if (json.is_discarded() || json["runs"].empty()) return "";
    return json["runs"][0]["run_id"];
  }

  fs::path directory_;
  std::string state_name_ = "labrack";
};

inline std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class InterruptTest : public CliTest {
 protected:
  // Starts kLong and waits until both agents measure.
  Background StartLong(const std::string& name) {
    Write("long.yaml", kLong);
    Background run = Start(name, Labrack({"run", "long.yaml", "--agents", "2", "--progress=json",
                                          "--json", "r.json"}));
    EXPECT_TRUE(WaitUntil(60s, [&] {
      return Count(ReadAll(run.errors), "\"phase\":\"measure\"") >= 2;
    })) << ReadAll(run.errors);
    // The look-out for leftovers must see what there is, or it would see nothing later either.
    const std::vector<std::string> now = Leftovers();
    EXPECT_THAT(now, ::testing::Contains(HasSubstr("labrack-worker")));
    EXPECT_THAT(now, ::testing::Contains(HasSubstr("file: ")));
    if (geteuid() == 0) EXPECT_THAT(now, ::testing::Contains(HasSubstr("loop: ")));
    if (geteuid() == 0) EXPECT_THAT(now, ::testing::Contains(HasSubstr("mount: ")));
    return run;
  }
};

}  // namespace labrack
