#include "storage/fs/file_system.h"

namespace labrack::fs {

Task<Result<void>> File::ReadFull(IoContext io, Offset at, MutableView into) {
  while (!into.empty()) {
    const Result<Bytes> got = co_await Read(io, at, into);
    if (!got) co_return std::unexpected(got.error());
    if (got->count() == 0) {
      co_return Fail(Errc::kIo, "the file ends at byte " + std::to_string(at.value()) + ", " +
                                    std::to_string(into.size()) + " bytes short of what was asked");
    }
    at += *got;
    into = into.subspan(got->size());
  }
  co_return Result<void>();
}

Task<Result<Bytes>> FileSystem::CopyRange(File&, Offset, File&, Offset, Bytes) {
  co_return Fail(Errc::kUnsupported, "this file system cannot copy ranges by itself");
}

Task<Result<std::unique_ptr<FileSystem::Mapping>>> FileSystem::Map(File&) {
  co_return Fail(Errc::kUnsupported, "this file system cannot map files into memory");
}

}  // namespace labrack::fs
