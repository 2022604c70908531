#include "storage/fs/file_system.h"

namespace labrack::fs {

Task<Result<Bytes>> FileSystem::CopyRange(File&, Offset, File&, Offset, Bytes) {
  co_return Fail(Errc::kUnsupported, "this file system cannot copy ranges by itself");
}

Task<Result<std::unique_ptr<FileSystem::Mapping>>> FileSystem::Map(File&) {
  co_return Fail(Errc::kUnsupported, "this file system cannot map files into memory");
}

}  // namespace labrack::fs
