// RangeLock: who may touch which blocks of a volume at a time.
//
//             read   write  copy
//   read      yes    no     yes     a copy does not change what its readers are sent to
//   write     no     no     no      two writes of one block would reach two disks in two orders
//   copy      yes    no     no      a resync must not put old data over a newer write
//
// Since reads wait for writes of the same blocks, a block behaves as one register: once a read has
// seen a new value, no later read sees the older one. First come, first served: a claim waits for
// every earlier one that it conflicts with, so nobody starves.
//
//   RangeLock::Claim claim(lock, Access::kWrite, at, length);
//   co_await claim.Granted();          ... held until `claim` goes away
#pragma once

#include <coroutine>
#include <cstdint>
#include <source_location>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/runtime/reactor.h"

namespace labrack::volume {

enum class Access : std::uint8_t { kRead, kWrite, kCopy };

class RangeLock {
 public:
  explicit RangeLock(runtime::Reactor& reactor) : reactor_(reactor) {}
  ~RangeLock() { LABRACK_CHECK(first_ == nullptr); }
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

  // Takes its place in the line when it is made; lives in the frame of the operation.
  class [[nodiscard]] Claim {
   public:
    Claim(RangeLock& lock, Access access, Offset at, Bytes length)
        : lock_(lock), access_(access), begin_(at.value()), end_(at.value() + length.count()) {
      lock_.Append(*this);
    }
    ~Claim() { lock_.Remove(*this); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    class Wait {
     public:
      Wait(Claim& claim, std::source_location where) : claim_(claim) {
        claim_.waiter_.what = "a range of a volume";
        claim_.waiter_.where = where;
      }
      bool await_ready() const { return claim_.granted_; }
      void await_suspend(std::coroutine_handle<> handle) {
        claim_.waiter_.handle = handle;
        claim_.suspended_ = true;
        claim_.lock_.reactor_.Wait(claim_.waiter_);
      }
      void await_resume() const {}

     private:
      Claim& claim_;
    };
    Wait Granted(std::source_location where = std::source_location::current()) {
      return {*this, where};
    }
    bool granted() const { return granted_; }

   private:
    friend class RangeLock;
    RangeLock& lock_;
    Access access_;
    std::uint64_t begin_;
    std::uint64_t end_;
    bool granted_ = false;
    bool suspended_ = false;
    Claim* before_ = nullptr;
    Claim* after_ = nullptr;
    runtime::Waiter waiter_;
  };

 private:
  static bool Conflict(const Claim& a, const Claim& b);
  static bool MustWait(const Claim& claim);
  void Append(Claim& claim);
  void Remove(Claim& claim);

  runtime::Reactor& reactor_;
  Claim* first_ = nullptr;  // all claims, granted or not, in the order in which they came
  Claim* last_ = nullptr;
};

}  // namespace labrack::volume
