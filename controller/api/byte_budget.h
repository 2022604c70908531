// A bound on the bytes that wait somewhere, all senders together. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace labrack::api {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Gives its bytes back when it goes away; the budget outlives it.
  class Share {
   public:
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (budget_ != nullptr) budget_->taken_ -= bytes_;
    }

   private:
    friend class ByteBudget;
    Share(ByteBudget* budget, std::size_t bytes) : budget_(budget), bytes_(bytes) {}
    ByteBudget* budget_;
    std::size_t bytes_;
  };

  // Nothing when there is no room.
  std::optional<Share> Take(std::size_t bytes) {
    if (taken_.fetch_add(bytes) + bytes > bytes_max_) {
      taken_ -= bytes;
      return std::nullopt;
    }
    return Share(this, bytes);
  }
  std::size_t taken() const { return taken_; }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> taken_{0};
};

}  // namespace labrack::api
