#include "agent/stack/loop_device.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <fstream>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "agent/stack/mounts.h"
#include "storage/base/descriptor.h"

namespace labrack::stack {
namespace {

constexpr Nanoseconds kRetryInterval = std::chrono::milliseconds(20);
constexpr unsigned kSectorSmall = 512;
constexpr unsigned kSectorLarge = 4096;

std::string SysfsBackingFile(const std::string& name) {
  std::ifstream file("/sys/block/" + name + "/loop/backing_file");
  std::string path;
  std::getline(file, path);
  return path;
}

// The node of a new device may appear a moment after its number is given out.
Result<Descriptor> OpenNode(const std::string& node) {
  const TimePoint until = MonotonicClock().Now() + std::chrono::seconds(1);
  while (true) {
    Descriptor device(open(node.c_str(), O_RDWR | O_CLOEXEC));
    if (device.valid()) return device;
    if ((errno != ENOENT && errno != ENXIO) || MonotonicClock().Now() >= until) {
      return FailErrno("open", node);
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

// 0, or the errno.
int Configure(int device, int file, bool direct_io, unsigned sector) {
  loop_config config{};
  config.fd = static_cast<__u32>(file);
  config.block_size = sector;
  config.info.lo_flags = direct_io ? LO_FLAGS_DIRECT_IO : 0;
  return ioctl(device, LOOP_CONFIGURE, &config) == 0 ? 0 : errno;
}

bool HasDirectIo(int device) {
  loop_info64 info{};
  return ioctl(device, LOOP_GET_STATUS64, &info) == 0 && (info.lo_flags & LO_FLAGS_DIRECT_IO) != 0;
}

// Direct I/O with 512-byte sectors where the device below has those, else with 4 KiB ones, else
// without direct I/O. 0, or the errno.
int ConfigureBest(int device, int file, bool want_direct_io) {
  if (want_direct_io) {
    for (unsigned sector : {kSectorSmall, kSectorLarge}) {
      const int error_number = Configure(device, file, true, sector);
      if (error_number != 0 && error_number != EINVAL) return error_number;
      if (error_number == 0 && HasDirectIo(device)) return 0;
      // Older kernels accept the flag and drop it when the sectors do not fit.
      if (error_number == 0 && ioctl(device, LOOP_CLR_FD) != 0) return errno;
    }
  }
  return Configure(device, file, false, kSectorSmall);
}

// btrfs remembers every device that it has seen; it fails for those that it does not know.
void ForgetInBtrfs(const std::string& node) {
  const Descriptor control(open("/dev/btrfs-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return;
  btrfs_ioctl_vol_args arguments{};
  std::copy_n(node.data(), std::min(node.size(), sizeof arguments.name - 1), arguments.name);
  ioctl(control.get(), BTRFS_IOC_FORGET_DEV, &arguments);
}

}  // namespace

Result<LoopDevice> AttachLoop(const std::filesystem::path& file, bool want_direct_io,
                              const std::function<Result<void>(const std::string& name)>& before) {
  const Descriptor control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return FailErrno("open", "/dev/loop-control");
  const int direct_flag = want_direct_io ? O_DIRECT : 0;
  Descriptor backing(open(file.c_str(), O_RDWR | O_CLOEXEC | direct_flag));
  if (!backing.valid() && errno == EINVAL) {  // a file system without direct I/O
    want_direct_io = false;
    backing = Descriptor(open(file.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!backing.valid()) return FailErrno("open", file.string());

  for (int attempt = 0; attempt < kLoopAttemptsMax; ++attempt) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return FailErrno("LOOP_CTL_GET_FREE", "/dev/loop-control");
    LoopDevice loop{.name = "loop" + std::to_string(number), .backing_file = file};
    if (Result<void> ready = before(loop.name); !ready) return std::unexpected(ready.error());
    Result<Descriptor> device = OpenNode(loop.node());
    if (!device) return std::unexpected(device.error());
    const int error_number = ConfigureBest(device->get(), backing.get(), want_direct_io);
    if (error_number == 0) {
      loop.direct_io = HasDirectIo(device->get());
      return loop;
    }
    if (error_number != EBUSY && error_number != EAGAIN && error_number != ENXIO) {
      return std::unexpected(Error::FromErrno(error_number, "LOOP_CONFIGURE", loop.node()));
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
  return Fail(Errc::kBusy, "/dev/loop-control",
              "others took every free loop device that it named, " +
                  std::to_string(kLoopAttemptsMax) + " times");
}

Result<bool> IsLoopOf(const std::string& name, const std::filesystem::path& file) {
  const std::string attached = SysfsBackingFile(name);
  if (attached == file.string() + " (deleted)") return true;
  if (attached != file.string()) return false;
  // The name could be that of a newer file at the same place.
  struct stat status{};
  if (stat(file.c_str(), &status) != 0) return errno == ENOENT;
  const Descriptor device(open(("/dev/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!device.valid()) return FailErrno("open", "/dev/" + name);
  loop_info64 info{};
  if (ioctl(device.get(), LOOP_GET_STATUS64, &info) != 0) {
    if (errno == ENXIO) return false;
    return FailErrno("LOOP_GET_STATUS64", name);
  }
  return info.lo_inode == status.st_ino;
}

Result<void> DetachLoop(const std::string& name, const std::filesystem::path& file,
                        Nanoseconds busy_wait) {
  const Result<bool> ours = IsLoopOf(name, file);
  if (!ours) return std::unexpected(ours.error());
  if (!*ours) return {};
  const std::string node = "/dev/" + name;
  Descriptor device(open(node.c_str(), O_RDWR | O_CLOEXEC));
  if (!device.valid()) return FailErrno("open", node);
  if (ioctl(device.get(), LOOP_CLR_FD) != 0 && errno != ENXIO) {
    return FailErrno("LOOP_CLR_FD", node);
  }
  // The kernel may wait for the last user, which is possibly ourselves.
  device.Close();
  const TimePoint until = MonotonicClock().Now() + busy_wait;
  while (true) {
    const Result<bool> still = IsLoopOf(name, file);
    if (!still) return std::unexpected(still.error());
    if (!*still) break;
    if (MonotonicClock().Now() >= until) {
      const std::string users = UsersOf(node);
      return Fail(Errc::kBusy, node,
                  "cannot be detached: in use by " + (users.empty() ? "the kernel" : users));
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
  ForgetInBtrfs(node);
  return {};
}

}  // namespace labrack::stack
