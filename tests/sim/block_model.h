// BlockModel: the oracle for anything that is a BlockDevice. Every write of a block carries the
// block's number and a version that grows; so what a read gives says which write it came from.
//
//   floor <= low <= what a read may give <= high
//
//   floor: covered by a flush, or written durably; survives anything
//   low:   acknowledged, or seen by a read: no later read may give an older one
//   high:  the newest write that was begun; what a read has given, once nothing is in flight
//
// A crash takes low back to floor. Reads that race writes of the same block may give either.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/check.h"

namespace labrack::sim {

class BlockModel {
 public:
  static constexpr std::size_t kBlock = 512;

  explicit BlockModel(std::size_t blocks) : blocks_(blocks) {}

  std::size_t block_count() const { return blocks_.size(); }
  bool Writing(std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) {
      if (blocks_[i].writing) return true;
    }
    return false;
  }

  // Writes of one block never overlap in time: the caller asks Writing first. Fills `data`.
  std::uint64_t BeginWrite(std::size_t first, MutableView data) {
    const std::uint64_t version = ++version_;
    for (std::size_t i = 0; i < data.size() / kBlock; ++i) {
      State& block = blocks_[first + i];
      LABRACK_CHECK(!block.writing);
      block.writing = true;
      block.high = version;
      ++block.changes;
      Fill(data.subspan(i * kBlock, kBlock), first + i, version);
    }
    return version;
  }
  void EndWrite(std::size_t first, std::size_t count, std::uint64_t version, bool ok,
                bool durable) {
    for (std::size_t i = first; i < first + count; ++i) {
      State& block = blocks_[i];
      block.writing = false;
      ++block.changes;
      if (!ok) continue;
      block.low = version;
      block.acked = version;
      if (durable) block.floor = version;
    }
  }

  // Flush: what was acknowledged when it began survives once it has succeeded.
  std::vector<std::uint64_t> BeginFlush() const {
    std::vector<std::uint64_t> acked;
    for (const State& block : blocks_) acked.push_back(block.acked);
    return acked;
  }
  void EndFlush(const std::vector<std::uint64_t>& acked) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].floor = std::max(blocks_[i].floor, acked[i]);
    }
  }

  // A read of [first, first + count) as it begins; given back to EndRead.
  struct ReadMark {
    std::vector<std::uint64_t> low;
    std::vector<std::uint64_t> changes;
  };
  ReadMark BeginRead(std::size_t first, std::size_t count) const {
    ReadMark mark;
    for (std::size_t i = first; i < first + count; ++i) {
      mark.low.push_back(blocks_[i].low);
      mark.changes.push_back(blocks_[i].changes);
    }
    return mark;
  }
  // What is wrong with it, if anything.
  std::optional<std::string> EndRead(std::size_t first, const ReadMark& mark, ConstView data) {
    for (std::size_t i = 0; i < data.size() / kBlock; ++i) {
      State& block = blocks_[first + i];
      const std::optional<std::uint64_t> got =
          VersionIn(data.subspan(i * kBlock, kBlock), first + i);
      if (!got || *got < mark.low[i] || *got > block.high) {
        return "block " + std::to_string(first + i) + " gave " +
               (got ? "version " + std::to_string(*got) : std::string("no version of it")) +
               "; it may give " + std::to_string(mark.low[i]) + " to " + std::to_string(block.high);
      }
      block.low = std::max(block.low, *got);
      if (!block.writing && block.changes == mark.changes[i]) block.high = *got;
    }
    return std::nullopt;
  }

  void Crash() {
    for (State& block : blocks_) {
      block.writing = false;
      ++block.changes;
      block.low = block.floor;
      block.acked = block.floor;
    }
  }

 private:
  struct State {
    std::uint64_t floor = 0;
    std::uint64_t acked = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint64_t changes = 0;  // of what a read may give
    bool writing = false;
  };

  static void Fill(MutableView block, std::uint64_t number, std::uint64_t version) {
    for (std::size_t at = 0; at < kBlock; at += 16) {
      std::memcpy(block.data() + at, &number, 8);
      std::memcpy(block.data() + at + 8, &version, 8);
    }
  }
  // Zeros are version 0: never written.
  static std::optional<std::uint64_t> VersionIn(ConstView block, std::uint64_t expected) {
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    std::memcpy(&number, block.data(), 8);
    std::memcpy(&version, block.data() + 8, 8);
    for (std::size_t at = 16; at < kBlock; at += 16) {
      if (std::memcmp(block.data(), block.data() + at, 16) != 0) return std::nullopt;
    }
    if (version == 0) return number == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
    if (number != expected) return std::nullopt;
    return version;
  }

  std::vector<State> blocks_;
  std::uint64_t version_ = 0;
};

}  // namespace labrack::sim
