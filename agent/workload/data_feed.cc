#include "agent/workload/data_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "agent/workload/engine.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// As much as stays in a processor's cache, and no fewer than the one in use and the next one.
constexpr Bytes kAhead = 1_MiB;
constexpr std::uint64_t kSlotsMin = 2;
constexpr std::uint64_t kSlotsMax = 64;
// A client and its maker.
constexpr std::uint32_t kProcessorsPerClient = 2;

Bytes Stride(Bytes block) {
  const std::uint64_t unit = AlignedBuffer::kAlignment;
  return Bytes((std::max<std::uint64_t>(1, block.count()) + unit - 1) / unit * unit);
}

}  // namespace

Bytes FeedShape::memory() const { return Stride(block) * slots; }

FeedShape FeedShape::For(Bytes block, std::uint32_t clients, std::uint32_t cpu_count) {
  if (cpu_count / kProcessorsPerClient < clients) return {.block = block};
  return {.block = block,
          .slots = std::clamp(kAhead / Stride(block), kSlotsMin, kSlotsMax),
          .ahead = true};
}

DataFeed::DataFeed(runtime::Env& env, FeedShape shape, Make make)
    : env_(env),
      shape_(shape),
      make_(std::move(make)),
      buffer_(shape.memory()),
      lengths_(shape.slots) {}

void DataFeed::Prepare() {
  std::memset(buffer_.view().data(), 0, buffer_.size());
  MakeOne();
}

MutableView DataFeed::View(std::size_t slot) {
  return buffer_.view().subspan(slot * Stride(shape_.block).size(), shape_.block.size());
}

void DataFeed::MakeOne() {
  const std::uint64_t number = made_.load(std::memory_order_relaxed);
  const std::size_t slot = number % shape_.slots;
  const std::optional<Bytes> length = make_(slot, View(slot));
  if (!length) {
    ended_.store(true, std::memory_order_release);
    return;
  }
  lengths_[slot] = *length;
  made_.store(number + 1, std::memory_order_release);
}

Task<void> DataFeed::RunMaker(TimePoint counted_from) {
  Prepare();
  made_bell_.Ring();
  while (!ended_ && !closed_) {
    const std::uint64_t in_use = made_.load(std::memory_order_relaxed) - freed_.load();
    if (in_use == shape_.slots) {
      co_await env_.WaitFor(&freed_bell_);
      continue;
    }
    const TimePoint from = env_.Now();
    MakeOne();
    making_ += std::max(Nanoseconds(0), env_.Now() - std::max(from, counted_from));
    made_bell_.Ring();
  }
}

void DataFeed::Close() {
  closed_.store(true, std::memory_order_release);
  freed_bell_.Ring();
}

bool DataFeed::Ready(Client* client) {
  freed_.store(taken_, std::memory_order_release);
  const std::uint64_t made = made_.load(std::memory_order_acquire);
  if (!shape_.ahead) {
    if (made > taken_ || ended_) return true;
    const TimePoint from = client->Now();
    MakeOne();
    making_ += client->Made(from);
    return true;
  }
  if (made - taken_ <= shape_.slots / 2) freed_bell_.Ring();
  return made > taken_;
}

Task<void> DataFeed::Wait(Client* client) {
  const TimePoint from = client->Now();
  while (made_.load(std::memory_order_acquire) == taken_ && !ended_) {
    co_await env_.WaitFor(&made_bell_);
  }
  client->Made(from);
}

std::optional<DataFeed::Block> DataFeed::Take() {
  // The last block may have been made just before the end.
  if (made_.load(std::memory_order_acquire) == taken_) return std::nullopt;
  const std::size_t slot = taken_++ % shape_.slots;
  return Block{.slot = slot, .data = View(slot).first(lengths_[slot].size())};
}

std::vector<std::size_t> DataFeed::Untaken() const {
  std::vector<std::size_t> slots;
  for (std::uint64_t number = taken_; number < made_; ++number) {
    slots.push_back(number % shape_.slots);
  }
  return slots;
}

}  // namespace labrack::workload
