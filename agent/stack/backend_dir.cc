// dir: a fresh directory of a file system that is there already. It needs no disks and no rights,
// and stands in for other stacks where those cannot be built.
#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/stack/backing.h"
#include "agent/stack/stack_backend.h"
#include "storage/base/descriptor.h"

namespace labrack::stack {
namespace {

class DirStack final : public BuiltStack {
 public:
  DirStack(std::filesystem::path directory, Bytes capacity, Backing backing)
      : directory_(std::move(directory)),
        capacity_(capacity),
        description_("directory " + directory_.string()),
        backing_(backing.Describe()) {
    if (!backing.device.empty()) {
      devices_.push_back({backing.device, backing.device + " (shared with the host)"});
    }
  }

  const std::filesystem::path& directory() const override { return directory_; }
  Bytes capacity() const override { return capacity_; }
  const std::vector<DeviceRef>& devices() const override { return devices_; }
  const std::string& description() const override { return description_; }
  const std::string& backing() const override { return backing_; }

  Result<void> DropCaches() override {
    const Descriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) return FailErrno("open", directory_.string());
    if (syncfs(directory.get()) != 0) return FailErrno("syncfs", directory_.string());
    return {};
  }

  Result<void> Check() const override {
    struct stat status{};
    if (stat(directory_.c_str(), &status) != 0) return FailErrno("stat", directory_.string());
    if (!S_ISDIR(status.st_mode)) {
      return Fail(Errc::kInternal, directory_.string(), "is not a directory any more");
    }
    return {};
  }

 private:
  std::filesystem::path directory_;
  Bytes capacity_;
  std::vector<DeviceRef> devices_;
  std::string description_;
  std::string backing_;
};

bool IsAtOrBelow(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [in_directory, in_path] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return in_directory == directory.end();
}

// The directory with all links resolved, if the configuration allows it.
Result<std::filesystem::path> AllowedDirectory(const std::string& wanted,
                                               const std::vector<std::string>& allowed) {
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(wanted, code);
  if (code) return std::unexpected(Error::FromErrno(code.value(), "resolve", wanted));
  for (const std::string& directory : allowed) {
    const std::filesystem::path real_allowed = std::filesystem::canonical(directory, code);
    if (!code && IsAtOrBelow(real, real_allowed)) return real;
  }
  return Fail(Errc::kPermissionDenied, wanted,
              "the agent's configuration does not allow this directory; name it in `directories:`");
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "dir"; }
  std::string WhyUnsupported(const HostAbility&) const override { return ""; }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks&) const override {
    if (!spec.dir().path().empty() && !spec.dir().path().starts_with('/')) {
      return Fail(Errc::kInvalidArgument, spec.dir().path(), "a dir stack needs an absolute path");
    }
    return DiskNeeds{};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const BuildRequest& request = context.request;
    std::filesystem::path parent = request.disks_dir;
    const std::string& wanted = request.stack.host().dir().path();
    if (request.stand_in.empty() && !wanted.empty()) {
      Result<std::filesystem::path> allowed = AllowedDirectory(wanted, request.allowed_directories);
      if (!allowed) return std::unexpected(allowed.error());
      parent = *std::move(allowed);
    }
    const std::filesystem::path directory = parent / ("labrack-" + request.tag);
    if (std::error_code ignored; std::filesystem::exists(directory, ignored)) {
      return Fail(Errc::kAlreadyExists, directory.string(), "should be made for this trial");
    }
    if (Result<void> added = context.undo.Add({UndoKind::kRemoveTree, directory.string(), ""});
        !added) {
      return std::unexpected(added.error());
    }
    if (mkdir(directory.c_str(), 0700) != 0) return FailErrno("mkdir", directory.string());
    struct statvfs status{};
    if (statvfs(directory.c_str(), &status) != 0) return FailErrno("statvfs", directory.string());
    const Result<Backing> backing = FindBacking(directory);
    if (!backing) return std::unexpected(backing.error());
    return std::make_unique<DirStack>(directory, Bytes(status.f_bavail) * status.f_frsize,
                                      *backing);
  }
};

}  // namespace

const StackBackend& DirBackend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
