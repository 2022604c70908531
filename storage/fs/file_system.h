// FileSystem: paths and handles, as workloads use them. Paths are relative to the file system's
// root, use '/', and hold no "..". HostFileSystem (host_file_system.h) maps them onto a directory
// of the host; our own file systems take its place without a change to any workload.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/block/block_device.h"

namespace labrack::fs {

using block::IoContext;
using runtime::Task;

enum class Access { kRead, kWrite, kReadWrite };

struct OpenOptions {
  Access access = Access::kRead;
  bool create = false;     // make the file when it is not there
  bool exclusive = false;  // with create: kAlreadyExists when it is there
  bool truncate = false;
  bool direct = false;     // past the page cache; offsets, lengths and memory aligned to 4 KiB
  bool data_sync = false;  // each write durable when it completes (O_DSYNC)
};

// How durable: the data and what is needed to find it again, or all attributes too.
enum class SyncKind { kData, kFull };

enum class Advice { kSequential, kRandom, kDropCache };

struct FileStatus {
  Bytes size;
  Bytes allocated;  // on the medium; less than size for a sparse file
  bool is_directory = false;
};

struct SpaceStatus {
  Bytes total;
  Bytes free;
};

class File {
 public:
  virtual ~File() = default;

  // Bytes read: less than asked only at the end of the file, 0 at or behind it.
  virtual Task<Result<Bytes>> Read(IoContext io, Offset at, MutableView into) = 0;
  // Fills all of `into` or fails; the end of the file before that is kIo.
  virtual Task<Result<void>> ReadFull(IoContext io, Offset at, MutableView into);
  // Writes all or fails.
  virtual Task<Result<void>> Write(IoContext io, Offset at, ConstView from) = 0;
  virtual Task<Result<void>> Sync(IoContext io, SyncKind kind) = 0;
  virtual Task<Result<void>> Truncate(Bytes size) = 0;
  virtual Task<Result<void>> Allocate(Offset at,
                                      Bytes length) = 0;  // kUnsupported where there is none
  virtual Task<Result<FileStatus>> Status() = 0;
  virtual Task<Result<void>> Advise(Advice advice) = 0;
  // The handle is gone afterwards, also on error. A File that is destroyed unclosed closes and
  // drops the error.
  virtual Task<Result<void>> Close() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Task<Result<std::unique_ptr<File>>> Open(std::string path, OpenOptions options) = 0;
  virtual Task<Result<FileStatus>> Status(std::string path) = 0;
  virtual Task<Result<void>> MakeDirectory(std::string path) = 0;
  virtual Task<Result<void>> Remove(std::string path) = 0;  // a file or an empty directory
  virtual Task<Result<void>> Rename(std::string from, std::string to) = 0;
  virtual Task<Result<std::vector<std::string>>> List(
      std::string path) = 0;  // sorted, without . and ..
  // Makes everything written so far durable (syncfs).
  virtual Task<Result<void>> SyncAll() = 0;
  virtual Task<Result<SpaceStatus>> Space() = 0;

  // What only some file systems can do; kUnsupported elsewhere.
  // Copies in the kernel or by sharing blocks. Bytes copied, less than asked only at the end of
  // `from`.
  virtual Task<Result<Bytes>> CopyRange(File& from, Offset from_at, File& to, Offset to_at,
                                        Bytes length);
  // The whole file mapped for reading; the view lives until the mapping object is destroyed.
  class Mapping {
   public:
    virtual ~Mapping() = default;
    virtual ConstView view() const = 0;
  };
  virtual Task<Result<std::unique_ptr<Mapping>>> Map(File& file);
};

}  // namespace labrack::fs
