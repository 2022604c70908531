// One lab at a time works in a state directory. Whoever holds the lock writes where its controller
// answers, so that `labrack ls` or `labrack cancel` in another window talk to the lab that is
// running instead of failing. Looking takes no lock: it never stands in the way of a lab.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::cli {

enum class LabState {
  kNone,      // nobody has a lab here; one may have been killed
  kStarting,  // somebody does, and has not said yet what for
  kPrivate,   // for questions of its own, as `labrack plan` has them; it ends soon
  kOpen,      // its controller answers everybody on this machine
};

struct LabHolder {
  LabState state = LabState::kNone;
  pid_t pid = 0;                // of kPrivate and kOpen
  std::string control_address;  // of kOpen
};

// Who has a lab in this state directory now, which need not be there.
Result<LabHolder> LookAtLab(const std::filesystem::path& state);

class LabLock {
 public:
  // Makes the directory when it is missing. Nothing when another process has the lock. It goes with
  // the process, however it ends.
  static Result<std::optional<LabLock>> Take(const std::filesystem::path& state);
  ~LabLock();
  LabLock(LabLock&& other) noexcept = default;
  LabLock& operator=(LabLock&& other) noexcept = default;

  Result<void> PublishPrivate();
  Result<void> Publish(const std::string& control_address);

 private:
  LabLock(std::string path, Descriptor descriptor);

  std::string path_;
  Descriptor descriptor_;
};

}  // namespace labrack::cli
