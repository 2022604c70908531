// One lab at a time works in a state directory. Whoever holds the lock writes where its controller
// answers, so that `labrack ls` or `labrack cancel` in another window talk to the lab that is
// running instead of failing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

#include "storage/base/descriptor.h"
#include "storage/base/result.h"

namespace labrack::cli {

// Who holds the lock.
struct LabHolder {
  pid_t pid = 0;
  std::string control_address;
};

class LabLock {
 public:
  // Makes the directory when it is missing. A lock that another process holds is no error: see
  // held(). The lock goes with the process, however it ends.
  static Result<LabLock> Take(const std::filesystem::path& state);
  ~LabLock();
  LabLock(LabLock&& other) noexcept = default;
  LabLock& operator=(LabLock&& other) noexcept = default;

  bool held() const { return held_; }
  // Of a lock that is not ours: what its holder wrote; nothing while it is still starting.
  Result<std::optional<LabHolder>> Holder() const;
  // Tries again; true when the lock is ours now.
  bool TryAgain();
  Result<void> Publish(const std::string& control_address);

 private:
  LabLock() = default;

  std::string path_;
  Descriptor descriptor_;
  bool held_ = false;
};

}  // namespace labrack::cli
