#include "agent/exec/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fstream>
#include <linux/magic.h>
#include <signal.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace labrack::exec {
namespace {

bool IsOfVersion2(const std::filesystem::path& path) {
  struct statfs facts{};
  return statfs(path.c_str(), &facts) == 0 && facts.f_type == CGROUP2_SUPER_MAGIC;
}

// Where version 2 is mounted ("... - cgroup2 cgroup2 rw"); empty: nowhere.
std::filesystem::path MountPoint() {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, mount_point;
    words >> id >> parent >> device >> root >> mount_point;
    if (root == "/") return mount_point;
  }
  return {};
}

// "0::/system.slice/labrack-agent.service"
std::string OwnGroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return "..";
}

}  // namespace

Result<Cgroup> Cgroup::Make(const std::string& name) {
  constexpr std::size_t kNameMax = 255;
  if (name.empty() || name.size() > kNameMax) {
    return Fail(Errc::kUnsupported, "cgroup", "a name has 1 to 255 bytes");
  }
  const std::filesystem::path mount_point = MountPoint();
  const std::string own = OwnGroup();
  if (mount_point.empty() || own.starts_with("..")) {
    return Fail(Errc::kUnsupported, "cgroup", "version 2 is not mounted for this process");
  }
  const std::filesystem::path path = mount_point / own / name;
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    const Error why = Error::FromErrno(errno, "mkdir", path.string());
    return Fail(Errc::kUnsupported, "cgroup", why.ToString());
  }
  if (!IsOfVersion2(path)) return Fail(Errc::kUnsupported, path.string(), "is no cgroup");
  return Cgroup(path);
}

std::optional<Cgroup> Cgroup::Find(const std::filesystem::path& path, const std::string& name) {
  if (name.empty() || path.filename() != name || !IsOfVersion2(path)) return std::nullopt;
  return Cgroup(path);
}

Result<Descriptor> Cgroup::OpenProcesses() const {
  Descriptor file(open((path_ / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return FailErrno("open", (path_ / "cgroup.procs").string());
  return file;
}

bool Cgroup::populated() const {
  std::ifstream events(path_ / "cgroup.events");
  for (std::string line; std::getline(events, line);) {
    if (line == "populated 1") return true;
  }
  return false;
}

void Cgroup::Kill() const {
  const Descriptor file(open((path_ / "cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  if (file.valid() && write(file.get(), "1", 1) == 1) return;
  // Linux before 5.14.
  std::ifstream processes(path_ / "cgroup.procs");
  for (pid_t pid = 0; processes >> pid;) {
    if (pid > 1 && pid != getpid()) kill(pid, SIGKILL);
  }
}

Result<void> Cgroup::Remove() const {
  if (rmdir(path_.c_str()) == 0 || errno == ENOENT) return {};
  return FailErrno("rmdir", path_.string());
}

}  // namespace labrack::exec
