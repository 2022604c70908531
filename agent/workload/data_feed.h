// DataFeed: the blocks that one client writes, made by a task beside it (the maker) while it writes
// those before. Making 128 KiB takes 26 us, a fast disk takes 44 us to write them: were the client
// to make them itself, the disk would stand idle for a third of the measured time.
//
//                 +--------+--------+--------+--------+
//   maker ------> | made   |        | in use | made   | ------> client
//   next free     +--------+--------+--------+--------+         Take: the oldest; the one before is
//   slot                    <- a ring of `slots` ->             free again
//
// The maker sleeps while the ring is full, until half of it is free, so that it is woken for many
// small blocks at once. The client waits only when nothing is made; such a wait is in no latency,
// but in the measured window, and counts (Client::Made, LW107).
//
// A maker takes a processor. Where each client does not have two of them, makers would run in the
// time of other clients' operations, unseen; there is none then, and the client makes each block
// itself when it asks for it, which counts as a wait. What is made is the same either way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "storage/base/aligned_buffer.h"
#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/runtime/env.h"

namespace labrack::workload {

class Client;

// What a feed keeps in memory. With `ahead` there is a maker.
struct FeedShape {
  Bytes block = {};
  std::size_t slots = 1;
  bool ahead = false;

  Bytes memory() const;

  // For one of `clients` on a host of `cpu_count` processors (0: not known).
  static FeedShape For(Bytes block, std::uint32_t clients, std::uint32_t cpu_count);
};

class DataFeed {
 public:
  // Makes the next block into `into`, which is a slot of the ring, and gives its length; nullopt:
  // that was the last one. Called by one task at a time, for the slots in turn.
  using Make = std::function<std::optional<Bytes>(std::size_t slot, MutableView into)>;

  struct Block {
    std::size_t slot = 0;
    MutableView data = {};  // the client's own until the next Take; it may also read into it
  };

  DataFeed(runtime::Env& env, FeedShape shape, Make make);

  // --- the client ---
  // Whether Take has an answer. Without a maker the block is made here. False: await Wait first.
  bool Ready(Client* client);
  runtime::Task<void> Wait(Client* client);
  // The next block, in the order in which they were made; nullopt after the last one.
  std::optional<Block> Take();

  // --- the engine ---
  bool ahead() const { return shape_.ahead; }
  // Before the start, where there is no maker: the first block, and the memory for it, whose first
  // use takes longer than making data.
  void Prepare();
  // The maker, until the last block or Close; its time counts from then on.
  runtime::Task<void> RunMaker(TimePoint counted_from);
  // The client is at its end.
  void Close();

  // --- when both are done ---
  // Of the measured time: in which data was made.
  Nanoseconds making() const { return making_; }
  // The slots that were made and never taken.
  std::vector<std::size_t> Untaken() const;

 private:
  void MakeOne();
  MutableView View(std::size_t slot);

  runtime::Env& env_;
  const FeedShape shape_;
  const Make make_;
  AlignedBuffer buffer_;
  std::vector<Bytes> lengths_;  // by slot
  Nanoseconds making_{0};

  std::uint64_t taken_ = 0;               // the client's own
  std::atomic<std::uint64_t> made_ = 0;   // written by the maker
  std::atomic<std::uint64_t> freed_ = 0;  // written by the client
  std::atomic<bool> ended_ = false;       // there is no more
  std::atomic<bool> closed_ = false;      // nobody wants more
  runtime::Bell made_bell_;               // for the client
  runtime::Bell freed_bell_;              // for the maker
};

}  // namespace labrack::workload
