// Loop devices over files of ours, with direct I/O so that nothing is cached twice.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::stack {

struct LoopDevice {
  std::string name;  // "loop3"; its node is /dev/loop3
  std::filesystem::path backing_file;
  bool direct_io = false;

  std::string node() const { return "/dev/" + name; }
};

// Other processes take loop devices too; a number that is lost to them is tried again this often.
constexpr int kLoopAttemptsMax = 128;

// Attaches a loop device to the file. `before` is called with the name of the device that is about
// to be attached, possibly several times, and must have made it undoable. Autoclear stays off: the
// device lives until it is detached, also across a crash. Direct I/O is taken where the file
// system below allows it.
Result<LoopDevice> AttachLoop(const std::filesystem::path& file, bool want_direct_io,
                              const std::function<Result<void>(const std::string& name)>& before);

// Whether the device is attached to this very file now (also when the file has been removed since).
Result<bool> IsLoopOf(const std::string& name, const std::filesystem::path& file);

// Detaches and waits until nobody holds the device any more; fine when it is not attached to
// `file`. kBusy, naming who uses it, after `busy_wait`.
Result<void> DetachLoop(const std::string& name, const std::filesystem::path& file,
                        Nanoseconds busy_wait);

}  // namespace labrack::stack
