// Request: one I/O of a caller that waits in an IoQueue. It lives in the frame of the coroutine
// that waits, and so do the links of every tree that it stands in: waiting allocates nothing.
#pragma once

#include <compare>
#include <cstdint>

#include <boost/intrusive/set.hpp>

#include "storage/base/aligned_buffer.h"
#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"

namespace labrack::block {

class IoQueue;

enum class Direction : std::uint8_t { kRead, kWrite };

struct Request : runtime::CancelWatch {
  using Hook = boost::intrusive::set_member_hook<>;
  // Whom a policy serves first: the lowest goes first; `order` makes all of them differ.
  struct Rank {
    std::uint64_t major = 0;
    std::uint64_t minor = 0;
    std::uint64_t order = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  enum class State : std::uint8_t {
    kWaiting,
    kLeads,      // is to start the I/O, for all members of its run
    kCompleted,  // by the one that led, or by a cancel
  };

  Request(Direction way, const IoContext& context, Offset start, MutableView to, ConstView source)
      : io(context), direction(way), at(start), into(to), from(source) {}

  Bytes length() const { return Bytes(direction == Direction::kRead ? into.size() : from.size()); }
  Offset end() const { return at + length(); }
  std::size_t class_index() const { return static_cast<std::size_t>(io.priority); }

  IoContext io;
  Direction direction;
  bool optional = false;  // a write that is worth nothing but between two others
  Offset at;
  MutableView into;
  ConstView from;

  State state = State::kWaiting;
  Result<void> result;
  TimePoint arrived{};
  std::uint64_t order = 0;    // of arrival
  std::uint64_t flushes = 0;  // that had been asked for when it arrived
  Rank rank;                  // the policy's
  runtime::Waiter waiter;

  // Of the one that leads: the members of its run from the lowest offset on, itself among them.
  Request* run_first = nullptr;
  Request* run_next = nullptr;  // of each member
  Bytes run_length;
  AlignedBuffer* buffer = nullptr;  // of the queue's, when there are several members

  IoQueue* owner = nullptr;  // for the cancel that comes

  Hook rank_hook;
  Hook offset_hook;
};

struct ByRank {
  bool operator()(const Request& a, const Request& b) const { return a.rank < b.rank; }
};
struct ByOffset {
  bool operator()(const Request& a, const Request& b) const {
    return a.at != b.at ? a.at < b.at : a.order < b.order;
  }
};

template <Request::Hook Request::* hook, typename Order>
using RequestTree =
    boost::intrusive::set<Request, boost::intrusive::member_hook<Request, Request::Hook, hook>,
                          boost::intrusive::compare<Order>,
                          boost::intrusive::constant_time_size<false>>;
using RequestsByRank = RequestTree<&Request::rank_hook, ByRank>;
using RequestsByOffset = RequestTree<&Request::offset_hook, ByOffset>;

}  // namespace labrack::block
