#include "storage/block/wrap/check.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

std::string Hex(std::byte byte) {
  char text[8];
  std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(byte));
  return text;
}

}  // namespace

Task<Result<void>> CheckDevice::Read(IoContext io, Offset at, MutableView into) {
  const std::uint64_t begun_at = change_count_;
  Result<void> done = co_await device_.Read(io, at, into);
  if (done) done = Compare(at, into, begun_at);
  co_return done;
}

Task<Result<void>> CheckDevice::Write(IoContext io, Offset at, ConstView from) {
  Begin(at, from.size());
  Result<void> done = co_await device_.Write(io, at, from);
  End(at, from, done.has_value());
  co_return done;
}

void CheckDevice::Forget() {
  for (const auto& [number, block] : blocks_) LABRACK_CHECK(block.writes_in_flight == 0);
  blocks_.clear();
}

void CheckDevice::Know(Block& block, ConstView content) {
  if (block.content == nullptr) {
    block.content = std::make_unique_for_overwrite<std::byte[]>(content.size());
  }
  std::memcpy(block.content.get(), content.data(), content.size());
}

void CheckDevice::Begin(Offset at, std::size_t length) {
  ++change_count_;
  const std::uint64_t first = at.value() / geometry_.block_size.count();
  for (std::uint64_t i = 0; i < length / geometry_.block_size.size(); ++i) {
    Block& block = At(first + i);
    if (block.writes_in_flight > 0) block.contended = true;
    ++block.writes_in_flight;
    block.changed_at = change_count_;
  }
}

void CheckDevice::End(Offset at, ConstView from, bool done) {
  ++change_count_;
  const std::size_t size = geometry_.block_size.size();
  const std::uint64_t first = at.value() / size;
  for (std::uint64_t i = 0; i < from.size() / size; ++i) {
    Block& block = At(first + i);
    --block.writes_in_flight;
    block.changed_at = change_count_;
    if (done && !block.contended) {
      Know(block, from.subspan(i * size, size));
    } else {
      block.content.reset();
    }
    if (block.writes_in_flight == 0) block.contended = false;
  }
}

Result<void> CheckDevice::Compare(Offset at, ConstView there, std::uint64_t begun_at) {
  const std::size_t size = geometry_.block_size.size();
  const std::uint64_t first = at.value() / size;
  Result<void> result;
  for (std::uint64_t i = 0; i < there.size() / size; ++i) {
    Block& block = At(first + i);
    if (block.writes_in_flight > 0 || block.changed_at > begun_at) continue;
    const ConstView found = there.subspan(i * size, size);
    if (block.content == nullptr) {
      Know(block, found);
      continue;
    }
    ++compared_count_;
    const ConstView written(block.content.get(), size);
    if (!result || std::memcmp(found.data(), written.data(), size) == 0) continue;
    ++mismatch_count_;
    result = std::unexpected(Mismatch(at, there.size(), at + Bytes(i * size), found, written));
  }
  return result;
}

Error CheckDevice::Mismatch(Offset read_at, std::size_t read_length, Offset block_at,
                            ConstView there, ConstView written) const {
  const auto differs = std::ranges::mismatch(there, written);
  const auto within = static_cast<std::size_t>(differs.in1 - there.begin());
  return Error(Errc::kDataMismatch, name_,
               "read of " + std::to_string(read_length) + " bytes at " +
                   std::to_string(read_at.value()) + ": the first difference is at " +
                   std::to_string(block_at.value() + within) + ", where " + Hex(there[within]) +
                   " stands and " + Hex(written[within]) + " was written");
}

}  // namespace labrack::block
