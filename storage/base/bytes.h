// Lengths and positions in bytes are types of their own: Offset + Bytes is an Offset, Offset -
// Offset is Bytes, and Offset + Offset does not compile. Text forms ("4KiB") are in units.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace labrack {

// A length in bytes.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(count_); }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::uint64_t n, Bytes a) { return a * n; }
  friend constexpr Bytes operator/(Bytes a, std::uint64_t n) { return Bytes(a.count_ / n); }
  friend constexpr std::uint64_t operator/(Bytes a, Bytes b) { return a.count_ / b.count_; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return Bytes(a.count_ % b.count_); }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::uint64_t count_ = 0;
};

// A position in bytes from the start of a device or file.
class Offset {
 public:
  constexpr Offset() = default;
  constexpr explicit Offset(std::uint64_t value) : value_(value) {}

  constexpr std::uint64_t value() const { return value_; }

  friend constexpr auto operator<=>(Offset, Offset) = default;
  friend constexpr Offset operator+(Offset at, Bytes length) {
    return Offset(at.value_ + length.count());
  }
  friend constexpr Offset operator-(Offset at, Bytes length) {
    return Offset(at.value_ - length.count());
  }
  friend constexpr Bytes operator-(Offset a, Offset b) { return Bytes(a.value_ - b.value_); }
  constexpr Offset& operator+=(Bytes length) { return *this = *this + length; }

 private:
  std::uint64_t value_ = 0;
};

constexpr bool IsAligned(Offset at, Bytes unit) { return at.value() % unit.count() == 0; }
constexpr bool IsAligned(Bytes length, Bytes unit) { return length.count() % unit.count() == 0; }

constexpr Bytes operator""_B(unsigned long long n) { return Bytes(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(n << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(n << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(n << 30); }

// Memory that an I/O reads into or writes from. It must not move or go away before the I/O is done.
using MutableView = std::span<std::byte>;
using ConstView = std::span<const std::byte>;

}  // namespace labrack
