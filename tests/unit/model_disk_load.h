// Loads for tests of modelled disks, and how long they take in virtual time.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "storage/base/random.h"
#include "storage/block/disk/model_disk.h"
#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"

namespace labrack::block {

struct Load {
  std::uint32_t clients = 1;  // at once
  std::uint32_t count = 1;    // operations of all of them
  Bytes length{4096};
  bool write = false;
  bool durable = false;
  bool random = true;  // or one stream, from `from` on
  Offset from = {};
  Bytes within = {};  // of random ones, from the beginning; 0: the whole disk
};

namespace internal {

struct LoadState {
  BlockDevice* disk;
  Load load;
  Random random;
  std::uint32_t begun = 0;

  Offset Next() {
    const std::uint32_t number = begun++;
    if (!load.random) return load.from + number * load.length;
    const Bytes within = load.within == Bytes(0) ? disk->geometry().size : load.within;
    return Offset(random.Below(within / load.length) * load.length.count());
  }
};

inline Task<void> LoadClient(LoadState* state) {
  std::vector<std::byte> memory(state->load.length.size(), std::byte{0x5a});
  while (state->begun < state->load.count) {
    const Offset at = state->Next();
    const IoContext io{.durable = state->load.durable};
    Result<void> done;
    if (state->load.write) {
      done = co_await state->disk->Write(io, at, memory);
    } else {
      done = co_await state->disk->Read(io, at, memory);
    }
    EXPECT_TRUE(done) << done.error().ToString();
  }
}

inline Task<void> RunLoadTask(runtime::Reactor* reactor, LoadState* state) {
  runtime::TaskGroup group(*reactor);
  for (std::uint32_t i = 0; i < state->load.clients; ++i) group.Spawn(LoadClient(state));
  co_await group.Join();
}

}  // namespace internal

// Runs it to its end: how long it took.
inline Nanoseconds RunLoad(runtime::SimReactor& reactor, BlockDevice& disk, const Load& load,
                           Seed seed = Seed{1}) {
  internal::LoadState state{.disk = &disk, .load = load, .random = Random(seed)};
  const TimePoint begin = reactor.Now();
  reactor.Run(internal::RunLoadTask(&reactor, &state));
  return reactor.Now() - begin;
}

inline Nanoseconds RunFlush(runtime::SimReactor& reactor, BlockDevice& disk) {
  const TimePoint begin = reactor.Now();
  const Result<void> flushed = reactor.Run(disk.Flush({}));
  EXPECT_TRUE(flushed) << flushed.error().ToString();
  return reactor.Now() - begin;
}

inline Task<void> SleepTask(runtime::Reactor* reactor, Nanoseconds time) {
  const TimePoint until = reactor->Now() + time;
  co_await reactor->SleepUntil(until, nullptr);
}

inline Task<void> JoinTask(runtime::TaskGroup* group) { co_await group->Join(); }

inline double Seconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

}  // namespace labrack::block
