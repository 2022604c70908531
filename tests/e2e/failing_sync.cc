// Loaded before the C library (LD_PRELOAD). As on a medium that has lost a write, one fsync or
// fdatasync fails with EIO: the first one, once there is the file $LABRACK_FAILING_SYNC, of a file
// whose path holds the text in it. Those behind it work, as they do in reality, and the file is
// gone. The program under test knows nothing of it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include <dlfcn.h>

namespace {

bool Fails(int file) {
  const char* control = std::getenv("LABRACK_FAILING_SYNC");
  if (control == nullptr) return false;
  std::FILE* stream = std::fopen(control, "re");
  if (stream == nullptr) return false;
  char text[256] = {};
  const std::size_t size = std::fread(text, 1, sizeof(text) - 1, stream);
  std::fclose(stream);
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  char path[4096] = {};
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (size == 0 || length <= 0 || std::strstr(path, text) == nullptr) return false;
  return unlink(control) == 0;
}

int SyncOr(const char* name, int file) {
  if (Fails(file)) {
    errno = EIO;
    return -1;
  }
  using Function = int (*)(int);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(file);
}

}  // namespace

extern "C" int fsync(int file) { return SyncOr("fsync", file); }
extern "C" int fdatasync(int file) { return SyncOr("fdatasync", file); }
