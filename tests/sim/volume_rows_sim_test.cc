// Goal: concat and stripe put every block at one place of its own, where the formula says; hold
// what was written, also while they grow and after power cuts; answer FLUSH as they were made to;
// and say what is wrong with components that do not fit.
// Method: the formula and a map of all places; seeded clients against a model of versions.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/concat.h"
#include "storage/volume/stripe.h"
#include "tests/sim/seeds.h"
#include "tests/sim/volume_client.h"

namespace labrack::volume {
namespace {

using block::FlushMode;
using runtime::SimReactor;
using runtime::TaskGroup;
using sim::BlockModel;
using sim::SimDisk;
using testing::HasSubstr;

constexpr std::size_t kSeeds = 150;
constexpr Bytes kSector{512};

// Disks of the given sizes in sectors.
struct Rack {
  Rack(SimReactor& reactor, const std::vector<std::uint64_t>& sectors, Bytes sector, Seed seed) {
    for (const std::uint64_t size : sectors) Add(reactor, size, sector, seed);
  }
  void Add(SimReactor& reactor, std::uint64_t sectors, Bytes sector, Seed seed) {
    const SimDisk::Options options{.geometry = {.size = sector * sectors, .block_size = sector}};
    disks.push_back(std::make_unique<SimDisk>(reactor, options, Derive(seed, disks.size())));
    parts.push_back({.device = disks.back().get(), .data_size = sector * sectors});
  }
  std::vector<std::unique_ptr<SimDisk>> disks;
  std::vector<Component> parts;
};

// Every block of the volume has a place, inside a disk, that no other block has.
void ExpectOwnPlaces(const RowVolume& volume) {
  std::map<std::pair<block::BlockDevice*, std::uint64_t>, std::uint64_t> taken;
  const Bytes sector = volume.geometry().block_size;
  for (Offset at; at < Offset(volume.geometry().size.count()); at += sector) {
    const Piece piece = volume.Locate(at, sector);
    ASSERT_EQ(piece.length, sector);
    ASSERT_TRUE(piece.device->geometry().Covers(piece.at, sector));
    const auto [other, is_new] = taken.insert({{piece.device, piece.at.value()}, at.value()});
    ASSERT_TRUE(is_new) << at.value() << " lies where " << other->second << " does";
  }
}

TEST(Stripe, DealsSegmentsToItsComponentsInTurn) {
  SimReactor reactor(Seed{1});
  Rack rack(reactor, {64, 64, 64}, kSector, Seed{1});
  const auto stripe = Stripe::Create(reactor, rack.parts, kSector * 4, FlushMode::kPass);
  ASSERT_TRUE(stripe.has_value());
  const std::uint64_t interlace = 4 * 512;
  for (std::uint64_t at = 0; at < (*stripe)->geometry().size.count(); at += 512) {
    const std::uint64_t segment = at / interlace;
    const Piece piece = (*stripe)->Locate(Offset(at), kSector * 64);
    EXPECT_EQ(piece.device, rack.parts[segment % 3].device);
    EXPECT_EQ(piece.at.value(), segment / 3 * interlace + at % interlace);
    EXPECT_EQ(piece.length.count(), interlace - at % interlace);
  }
}

TEST(Stripe, ComponentsOfDifferentSizesBecomeSeveralStripes) {
  SimReactor reactor(Seed{1});
  Rack rack(reactor, {40, 17, 24}, kSector, Seed{1});
  const auto stripe = Stripe::Create(reactor, rack.parts, kSector * 4, FlushMode::kPass);
  ASSERT_TRUE(stripe.has_value());
  // 16 of each; 8 more of the first and the third; 16 more of the first.
  ASSERT_EQ((*stripe)->rows().size(), 3U);
  EXPECT_EQ((*stripe)->geometry().size, kSector * (48 + 16 + 16));
  EXPECT_EQ((*stripe)->Locate(Offset(52 * 512), kSector).device, rack.parts[2].device);
  EXPECT_EQ((*stripe)->Locate(Offset(64 * 512), kSector * 99).length, kSector * 16);
  ExpectOwnPlaces(**stripe);
}

struct Case {
  std::unique_ptr<RowVolume> volume;
  Concat* concat = nullptr;
  Stripe* stripe = nullptr;
  Result<void> Grow(std::span<const Component> parts) const {
    return concat != nullptr ? concat->Grow(parts) : stripe->Grow(parts);
  }
};

Case MakeCase(SimReactor& reactor, const Rack& rack, Random& random) {
  Case made;
  if (random.Chance(0.5)) {
    auto concat = Concat::Create(reactor, rack.parts, FlushMode::kPass);
    made.concat = concat->get();
    made.volume = std::move(*concat);
  } else {
    const Bytes interlace = kSector * (1 + random.Below(8));
    auto stripe = Stripe::Create(reactor, rack.parts, interlace, FlushMode::kPass);
    made.stripe = stripe->get();
    made.volume = std::move(*stripe);
  }
  return made;
}

Task<void> GrowSoon(SimReactor* reactor, const Case* made, std::span<const Component> parts) {
  co_await sim::SleepFor(reactor, std::chrono::milliseconds(3));
  const Result<void> grown = made->Grow(parts);
  EXPECT_TRUE(grown.has_value());
}

Task<void> PowerOffSoon(SimReactor* reactor, Rack* rack, Nanoseconds time) {
  co_await sim::SleepFor(reactor, time);
  for (const auto& disk : rack->disks) disk->PowerOff();
}

Task<void> Live(SimReactor* reactor, const Case* made, BlockModel* model, Rack* rack,
                std::span<const Component> more, Seed seed) {
  Random random(seed);
  TaskGroup group(*reactor);
  for (std::uint64_t i = 0; i < 3; ++i) {
    group.Spawn(sim::RunClient(made->volume.get(), model, {.blocks_max = 40}, Derive(seed, i)));
  }
  group.Spawn(GrowSoon(reactor, made, more));
  group.Spawn(PowerOffSoon(reactor, rack, std::chrono::microseconds(3000 + random.Below(20'000))));
  co_await group.Join();
}

TEST(RowsSim, HoldWhatWasFlushedAcrossGrowthAndPowerCuts) {
  sim::ForEachSeed(kSeeds, [](Seed seed) {
    Random random(seed);
    SimReactor reactor(seed);
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t i = 2 + random.Below(4); i > 0; --i) sizes.push_back(30 + random.Below(90));
    Rack rack(reactor, sizes, kSector, seed);
    const Case made = MakeCase(reactor, rack, random);
    BlockModel model(made.volume->geometry().size / kSector);
    rack.Add(reactor, 50, kSector, seed);
    const std::span<const Component> more(&rack.parts.back(), 1);
    const Bytes before = made.volume->geometry().size;
    reactor.Run(Live(&reactor, &made, &model, &rack, more, seed));
    EXPECT_GE(made.volume->geometry().size, before + kSector * 40);
    ExpectOwnPlaces(*made.volume);
    for (const auto& disk : rack.disks) disk->PowerOn(sim::DrawCut(random));
    model.Crash();
    reactor.Run(sim::ReadAll(made.volume.get(), &model));
  });
}

Task<Result<void>> FlushOf(block::BlockDevice* device) { return device->Flush(block::IoContext{}); }

TEST(Rows, AnswerFlushAsTheyWereMadeTo) {
  SimReactor reactor(Seed{1});
  Rack rack(reactor, {64, 64}, kSector, Seed{1});
  const auto flush = [&](FlushMode mode) {
    const auto concat = Concat::Create(reactor, rack.parts, mode);
    return reactor.Run(FlushOf(concat->get()));
  };
  EXPECT_TRUE(flush(FlushMode::kPass).has_value());
  EXPECT_EQ(rack.disks[0]->flush_count(), 1U);
  EXPECT_EQ(rack.disks[1]->flush_count(), 1U);
  EXPECT_TRUE(flush(FlushMode::kDrop).has_value());
  const Result<void> refused = flush(FlushMode::kRefuse);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Errc::kUnsupported);
  EXPECT_EQ(rack.disks[0]->flush_count(), 1U);
}

std::string StripeError(SimReactor& reactor, const std::vector<Component>& parts, Bytes interlace) {
  const auto stripe = Stripe::Create(reactor, parts, interlace, FlushMode::kPass);
  if (stripe) return "none";
  EXPECT_EQ(stripe.error().code(), Errc::kInvalidArgument);
  return stripe.error().ToString();
}

TEST(Rows, SayWhatIsWrongWithTheirComponents) {
  SimReactor reactor(Seed{1});
  Rack rack(reactor, {64, 64, 3}, kSector, Seed{1});
  Rack other(reactor, {64}, Bytes(4096), Seed{2});
  const std::vector<Component>& parts = rack.parts;
  EXPECT_THAT(StripeError(reactor, {parts[0]}, kSector), HasSubstr("too few"));
  EXPECT_THAT(StripeError(reactor, {parts[0], parts[1]}, Bytes(700)),
              HasSubstr("700B is no multiple of the sector"));
  EXPECT_THAT(StripeError(reactor, {parts[0], parts[1]}, Bytes(0)), HasSubstr("no multiple"));
  EXPECT_THAT(StripeError(reactor, {parts[0], parts[0]}, kSector), HasSubstr("already"));
  EXPECT_THAT(StripeError(reactor, {parts[0], other.parts[0]}, kSector),
              HasSubstr("mixes sector sizes: component 1 has 4KiB, those before it 512B"));
  EXPECT_THAT(StripeError(reactor, {parts[0], parts[2]}, kSector * 8),
              HasSubstr("1536B for data, less than one interlace of 4KiB"));
  EXPECT_FALSE(Concat::Create(reactor, {}, FlushMode::kPass).has_value());

  const auto concat = Concat::Create(reactor, std::span(parts).first(2), FlushMode::kPass);
  const Result<void> grown = (*concat)->Grow(other.parts);
  EXPECT_FALSE(grown.has_value());
  EXPECT_EQ((*concat)->geometry().size, kSector * 128) << "nothing has changed";
}

}  // namespace
}  // namespace labrack::volume
