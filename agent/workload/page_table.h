// Which generation each page of a file was last acknowledged with: 4 bytes a page, so that every
// page can be checked after the measurement. Two clients never write one page at a time (nobody
// could say afterwards what belongs there), so a page is claimed before it is written.
//
//   bit 31: claimed     bits 0-30: generation of the last acknowledged write
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/workload/data.h"

namespace labrack::workload {

class PageTable {
 public:
  static constexpr std::uint64_t kPagesMax = std::uint64_t{1} << 28;  // 1 GiB of memory

  static Bytes Memory(std::uint64_t page_count) {
    return Bytes(page_count * sizeof(std::uint32_t));
  }

  explicit PageTable(std::uint64_t page_count) : words_(page_count) {}

  std::uint64_t page_count() const { return words_.size(); }

  // The generation to write next; nullopt while another client writes this page.
  std::optional<Generation> Claim(std::uint64_t page) {
    std::uint32_t word = words_[page].load(std::memory_order_relaxed);
    if ((word & kClaimed) != 0) return std::nullopt;
    if (!words_[page].compare_exchange_strong(word, word | kClaimed, std::memory_order_acquire)) {
      return std::nullopt;
    }
    return Generation{(word + 1) & ~kClaimed};
  }
  // The write of a claimed page was acknowledged.
  void Acknowledge(std::uint64_t page, Generation generation) {
    words_[page].store(generation.value, std::memory_order_release);
  }
  // The claimed page was not written after all.
  void Release(std::uint64_t page) { words_[page].fetch_and(~kClaimed, std::memory_order_release); }

  Generation Last(std::uint64_t page) const {
    return Generation{words_[page].load(std::memory_order_relaxed) & ~kClaimed};
  }

 private:
  static constexpr std::uint32_t kClaimed = std::uint32_t{1} << 31;
  std::vector<std::atomic<std::uint32_t>> words_;
};

}  // namespace labrack::workload
