// What the simulations of volumes have in common: clients that read, write and flush a device
// against the model, a memory of component states that survives a power cut, and looks at whole
// devices.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/runtime/reactor.h"
#include "storage/volume/component.h"
#include "tests/sim/block_model.h"
#include "tests/sim/sim_disk.h"

namespace labrack::sim {

using runtime::Task;

inline Task<void> SleepFor(runtime::Reactor* reactor, Nanoseconds time) {
  const TimePoint until = reactor->Now() + time;
  Result<void> slept = co_await reactor->SleepUntil(until, nullptr);
  LABRACK_CHECK(slept.has_value());
}

inline Task<void> WriteOnce(block::BlockDevice* device, BlockModel* model, std::size_t first,
                            std::size_t count, bool durable) {
  std::vector<std::byte> data(count * BlockModel::kBlock);
  const std::uint64_t version = model->BeginWrite(first, data);
  const block::IoContext io{.priority = block::PriorityClass::kSyncWrite, .durable = durable};
  Result<void> written = co_await device->Write(io, Offset(first * BlockModel::kBlock), data);
  model->EndWrite(first, count, version, written.has_value(), durable);
}

inline Task<void> ReadOnce(block::BlockDevice* device, BlockModel* model, std::size_t first,
                           std::size_t count) {
  std::vector<std::byte> data(count * BlockModel::kBlock);
  const BlockModel::ReadMark mark = model->BeginRead(first, count);
  Result<void> read =
      co_await device->Read(block::IoContext{}, Offset(first * BlockModel::kBlock), data);
  if (!read) co_return;
  const std::optional<std::string> wrong = model->EndRead(first, mark, data);
  EXPECT_EQ(wrong, std::nullopt) << wrong.value_or("");
}

inline Task<void> FlushOnce(block::BlockDevice* device, BlockModel* model) {
  const std::vector<std::uint64_t> acked = model->BeginFlush();
  Result<void> flushed = co_await device->Flush(block::IoContext{});
  if (flushed) model->EndFlush(acked);
}

struct Mix {
  std::size_t ops = 40;
  std::size_t blocks_max = 12;  // of one operation
};

inline Task<void> RunClient(block::BlockDevice* device, BlockModel* model, Mix mix, Seed seed) {
  Random random(seed);
  for (std::size_t i = 0; i < mix.ops; ++i) {
    const std::size_t count = 1 + random.Below(mix.blocks_max);
    const std::size_t first = random.Below(model->block_count() - count + 1);
    const std::uint64_t kind = random.Below(16);
    if (kind < 8) {
      const bool durable = kind == 0;
      if (!model->Writing(first, count)) {
        co_await WriteOnce(device, model, first, count, durable);
      }
    } else if (kind < 15) {
      co_await ReadOnce(device, model, first, count);
    } else {
      co_await FlushOnce(device, model);
    }
  }
}

// Every block, in reads of one block each; errors are failures of the test.
inline Task<void> ReadAll(block::BlockDevice* device, BlockModel* model) {
  for (std::size_t i = 0; i < model->block_count(); ++i) {
    std::array<std::byte, BlockModel::kBlock> data{};
    const BlockModel::ReadMark mark = model->BeginRead(i, 1);
    Result<void> read =
        co_await device->Read(block::IoContext{}, Offset(i * BlockModel::kBlock), data);
    EXPECT_TRUE(read.has_value()) << read.error().ToString();
    if (!read) co_return;
    const std::optional<std::string> wrong = model->EndRead(i, mark, data);
    EXPECT_EQ(wrong, std::nullopt) << wrong.value_or("");
    if (wrong) co_return;
  }
}

inline block::CutOptions DrawCut(Random& random) {
  return {.policy = static_cast<block::CutPolicy>(random.Below(block::kCutPolicyCount)),
          .reorder = random.Chance(0.5)};
}

// Takes a drawn time and forgets what it was told too late: it has the power of the disks.
class SimLedger final : public volume::Ledger {
 public:
  SimLedger(runtime::Reactor& reactor, std::size_t slots, Seed seed)
      : states(slots, volume::State::kOkay), reactor_(reactor), random_(seed) {}

  Task<Result<void>> Record(block::IoContext, std::size_t slot, volume::State state) override {
    co_await SleepFor(&reactor_, Nanoseconds(static_cast<std::int64_t>(random_.Below(300'000))));
    if (off) co_return Fail(Errc::kUnavailable, "the power is off");
    if (slot >= states.size()) states.resize(slot + 1);
    states[slot] = state;
    co_await SleepFor(&reactor_, Nanoseconds(static_cast<std::int64_t>(random_.Below(300'000))));
    if (off) co_return Fail(Errc::kUnavailable, "the power is off");
    co_return {};
  }
  Task<Result<std::optional<volume::Component>>> TakeSpare(block::IoContext io, std::size_t slot,
                                                           Bytes size) override {
    if (!spare || spare->data_size < size) co_return std::nullopt;
    Result<void> recorded = co_await Record(io, slot, volume::State::kResyncing);
    if (!recorded) co_return std::unexpected(recorded.error());
    spare_slot = slot;
    std::optional<volume::Component> taken = spare;
    spare.reset();
    co_return taken;
  }

  std::vector<volume::State> states;
  bool off = false;
  std::optional<volume::Component> spare;
  std::optional<std::size_t> spare_slot;  // whose place it has taken

 private:
  runtime::Reactor& reactor_;
  Random random_;
};

}  // namespace labrack::sim
