#include "storage/base/file_lock.h"

#include <fcntl.h>

namespace labrack {
namespace {

struct flock WholeFile() {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Result<bool> TryLockFile(const Descriptor& file, const std::string& name) {
  struct flock lock = WholeFile();
  if (fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return FailErrno("lock", name);
}

Result<bool> IsFileLocked(const Descriptor& file, const std::string& name) {
  struct flock lock = WholeFile();
  if (fcntl(file.get(), F_OFD_GETLK, &lock) != 0) return FailErrno("ask for the lock of", name);
  return lock.l_type != F_UNLCK;
}

}  // namespace labrack
