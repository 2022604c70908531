// Goal: whoever may start a set for writing sees the newest generation that was acknowledged,
// whatever disks are missing and wherever the power was cut before.
// Method: every schedule of a small world, by enumeration: three disks; two lives; in each, a group
// of disks that are here, a start and an update, and after any number of replica writes a power cut
// or the loss of one disk or two, which leaves the write that meets it undone, done or torn; then a
// start from every group of disks.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/volume/state_database.h"

namespace labrack::volume {
namespace {

using runtime::SimReactor;

constexpr std::size_t kDisks = 3;
constexpr std::size_t kNever = 1000;

enum class Last { kUndone, kDone, kTorn };

constexpr std::size_t kAll = (1U << kDisks) - 1;

// When some disks go, or all.
struct Power {
  std::size_t writes_left = kNever;
  Last last = Last::kUndone;  // of the write that meets it
  std::size_t lost = kAll;    // as bits; the others go on
  bool met = false;
};

// The two slots of one disk.
class SlotDisk final : public block::BlockDevice {
 public:
  using Slots = std::array<std::vector<std::byte>, kSlotCount>;

  SlotDisk(Power& power, std::size_t number, Slots& slots)
      : power_(power), number_(number), slots_(slots) {}
  block::Geometry geometry() const override { return {kHeadSize + 1_MiB, Bytes(512)}; }
  Task<Result<void>> Read(block::IoContext, Offset at, MutableView into) override {
    const std::vector<std::byte>& slot = slots_[at.value() / kSlotSize.count()];
    std::ranges::copy(slot, into.begin());
    std::ranges::fill(into.subspan(slot.size()), std::byte{0});
    co_return {};
  }
  Task<Result<void>> Write(block::IoContext io, Offset at, ConstView from) override {
    EXPECT_TRUE(io.durable);
    std::vector<std::byte>& slot = slots_[at.value() / kSlotSize.count()];
    if (power_.writes_left > 0 || (power_.lost >> number_ & 1U) == 0) {
      slot.assign(from.begin(), from.end());
      if (power_.writes_left > 0) --power_.writes_left;
      co_return {};
    }
    const Last last = std::exchange(power_.met, true) ? Last::kUndone : power_.last;
    if (last != Last::kUndone) slot.assign(from.begin(), from.end());
    if (last == Last::kTorn) slot[60] ^= std::byte{0xff};
    co_return Fail(Errc::kIo, "the disk is gone");
  }
  Task<Result<void>> Flush(block::IoContext) override { co_return {}; }

 private:
  Power& power_;
  std::size_t number_;
  Slots& slots_;
};

using Disks = std::array<SlotDisk::Slots, kDisks>;

struct World {
  Disks disks;
  std::uint64_t acknowledged = 0;  // what the last update that succeeded has put
  std::uint64_t tried = 0;         // what the last one put, whether or not it did
};

std::uint64_t ValueOf(const SetRecord& record) { return record.volumes[0].interlace.count(); }

struct Life {
  std::size_t here = 0;  // the disks, as bits
  Power power;
};

// One life of the set. False when it may not start.
Task<bool> Live(SimReactor* reactor, World* world, Life* life, std::uint64_t* seen) {
  std::vector<std::unique_ptr<SlotDisk>> disks;
  std::vector<block::BlockDevice*> given;
  for (std::size_t i = 0; i < kDisks; ++i) {
    if ((life->here >> i & 1U) == 0) continue;
    disks.push_back(std::make_unique<SlotDisk>(life->power, i, world->disks[i]));
    given.insert(given.begin(), disks.back().get());  // in another order
  }
  Result<std::unique_ptr<StateDatabase>> found =
      co_await StateDatabase::Find(reactor, given, std::nullopt);
  EXPECT_TRUE(found.has_value()) << found.error().ToString();
  if (!found || !(*found)->CheckVoices(false)) co_return false;
  *seen = ValueOf((*found)->record());
  StateDatabase::Change nothing = [](SetRecord&) {};
  Result<void> started = co_await (*found)->Start(nothing);
  // What it has started from counts from now on.
  if (started) world->acknowledged = *seen;
  if (!started) co_return true;
  const std::uint64_t value = ++world->tried;
  StateDatabase::Change put = [value](SetRecord& record) {
    record.volumes[0].interlace = Bytes(value);
  };
  Result<void> updated = co_await (*found)->Update(block::IoContext{}, put);
  if (updated) world->acknowledged = value;
  co_return true;
}

Task<void> Make(SimReactor* reactor, World* world) {
  Power power;
  std::vector<std::unique_ptr<SlotDisk>> disks;
  std::vector<block::BlockDevice*> given;
  SetRecord record{.set_id = 5};
  for (std::uint32_t i = 0; i < kDisks; ++i) {
    disks.push_back(std::make_unique<SlotDisk>(power, i, world->disks[i]));
    given.push_back(disks.back().get());
    record.disks.push_back({.id = DiskIdOf(5, i)});
  }
  record.volumes.push_back({.kind = Kind::kConcat, .children = {{}}});
  const std::unique_ptr<StateDatabase> database =
      StateDatabase::Make(*reactor, given, std::move(record));
  Result<void> written = co_await database->WriteFirst();
  EXPECT_TRUE(written.has_value());
}

struct Tally {
  std::size_t schedules = 0;
  std::size_t starts = 0;
};

// What may happen in one life: promise, start, its confirmation and an update are up to twelve
// writes.
std::vector<Power> Faults() {
  std::vector<Power> faults{{}};
  for (const Last last : {Last::kUndone, Last::kDone, Last::kTorn}) {
    for (std::size_t writes = 0; writes < 12; ++writes) {
      faults.push_back({.writes_left = writes, .last = last});
      if (writes % 3 == 1) {
        faults.push_back({.writes_left = writes, .last = last, .lost = 0b010});
      }
      if (writes % 3 == 0) {
        faults.push_back({.writes_left = writes, .last = last, .lost = 0b001});
        faults.push_back({.writes_left = writes, .last = last, .lost = 0b110});
      }
    }
  }
  return faults;
}

// Every continuation of `world` by `lives` lives and a start.
void Explore(const World& world, std::size_t lives, Tally& tally) {
  static const std::vector<Power> kFaults = Faults();
  static const std::vector<Power> kNone = {{}};
  for (std::size_t here = 1; here < (1U << kDisks); ++here) {
    for (const Power& power : lives > 0 ? kFaults : kNone) {
      World next = world;
      Life life{.here = here, .power = power};
      std::uint64_t seen = 0;
      SimReactor reactor(Seed{1});
      ++tally.schedules;
      if (!reactor.Run(Live(&reactor, &next, &life, &seen))) continue;
      ++tally.starts;
      ASSERT_GE(seen, world.acknowledged)
          << "disks " << here << " start from what is over; " << lives << " lives to go";
      if (lives > 0) Explore(next, lives - 1, tally);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(StateDatabase, AStaleDiskNeverWins) {
  World world;
  SimReactor reactor(Seed{1});
  reactor.Run(Make(&reactor, &world));
  Tally tally;
  Explore(world, 2, tally);
  EXPECT_GT(tally.schedules, 50'000U);
  EXPECT_GT(tally.starts, 20'000U);
}

// What takes more lives than can be enumerated.
TEST(StateDatabase, AStaleDiskNeverWinsInManyLives) {
  const std::vector<Power> faults = Faults();
  for (std::uint64_t seed = 1; seed <= 60'000; ++seed) {
    Random random(Seed{seed});
    World world;
    SimReactor reactor(Seed{1});
    reactor.Run(Make(&reactor, &world));
    for (int lives = 0; lives < 6; ++lives) {
      Life life{.here = 1 + random.Below(kAll), .power = faults[random.Below(faults.size())]};
      const std::uint64_t acknowledged = world.acknowledged;
      std::uint64_t seen = 0;
      if (!reactor.Run(Live(&reactor, &world, &life, &seen))) continue;
      ASSERT_GE(seen, acknowledged) << "seed " << seed << ": disks " << life.here
                                    << " start from what is over, in life " << lives;
    }
  }
}

}  // namespace
}  // namespace labrack::volume
