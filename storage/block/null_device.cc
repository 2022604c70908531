#include "storage/block/null_device.h"

namespace labrack::block {

Task<Result<void>> NullDevice::Read(IoContext, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  co_return Result<void>();
}

Task<Result<void>> NullDevice::Write(IoContext, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  co_return Result<void>();
}

Task<Result<void>> NullDevice::Flush(IoContext) { co_return Result<void>(); }

}  // namespace labrack::block
