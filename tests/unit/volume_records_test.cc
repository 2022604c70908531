// Goal: the records of volumes keep their form on disk, come back as they were, and whatever a
// disk may hold instead is an error that says what and where.
// Method: golden images of version 1; random records there and back; every single damaged byte and
// every cut; damage below a CRC that is right.
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/base/crc64.h"
#include "storage/base/random.h"
#include "storage/volume/dirty_regions.h"
#include "storage/volume/records.h"
#include "tests/unit/golden.h"

namespace labrack::volume {
namespace {

using testing::HasSubstr;

SetRecord Sample() {
  SetRecord record{.set_id = 0x0123456789abcdefULL, .generation = 65538};
  for (std::uint32_t i = 0; i < 6; ++i) {
    record.disks.push_back(
        {.id = DiskIdOf(record.set_id, i), .size = 9_GiB + 512_B * i, .counts = i != 2});
  }
  const auto disk = [](std::uint32_t index, State state, std::uint16_t group) {
    return ChildEntry{
        .source = ChildEntry::Source::kDisk, .state = state, .group = group, .index = index};
  };
  record.volumes.push_back(
      {.kind = Kind::kStripe,
       .flush_mode = block::FlushMode::kRefuse,
       .interlace = 16_KiB,
       .children = {disk(0, State::kOkay, 0), disk(1, State::kOkay, 0), disk(5, State::kOkay, 1)}});
  record.volumes.push_back(
      {.kind = Kind::kMirror,
       .read_policy = ReadPolicy::kGeometric,
       .write_mode = WriteMode::kSerial,
       .size = 8_GiB,
       .children = {{.source = ChildEntry::Source::kVolume, .state = State::kOkay, .index = 0},
                    disk(2, State::kFailed, 0),
                    {},
                    disk(3, State::kResyncing, 0)}});
  record.spares = {4};
  return record;
}

// Sixteen bytes a line; lines of zeros are left out.
std::string Hex(ConstView bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const ConstView line = bytes.subspan(at, 16);
    bool zero = true;
    std::string hex;
    for (const std::byte byte : line) {
      const auto value = static_cast<unsigned>(byte);
      zero = zero && value == 0;
      hex += ' ';
      hex += kDigits[value >> 4];
      hex += kDigits[value & 0xf];
    }
    if (!zero) text += std::to_string(at) + ":" + hex + "\n";
  }
  return text;
}

TEST(Records, KeepTheirFormOnDisk) {
  ExpectGolden("volume_set_record_1.txt",
               Hex(EncodeReplica({.record = Sample(), .disk = 3, .promised = 9}, Offset(0))));
  ExpectGolden("volume_dirty_record_1.txt",
               Hex(DirtyRegions::AllDirty({.region_size = 100_KiB, .count = 37})));
}

TEST(Records, ComeBackAsTheyWere) {
  for (const Offset at : {Offset(0), Offset(kSlotSize.count())}) {
    const Result<Replica> replica =
        DecodeReplica(EncodeReplica({.record = Sample(), .disk = 3, .promised = 9}, at), at);
    ASSERT_TRUE(replica.has_value()) << replica.error().ToString();
    EXPECT_EQ(replica->record, Sample());
    EXPECT_EQ(replica->disk, 3U);
  }
}

TEST(Records, TheLargestSetFitsIntoASlot) {
  SetRecord record;
  for (std::uint32_t i = 0; i < kDisksMax; ++i) record.disks.push_back({.id = i});
  VolumeEntry volume;
  volume.children.resize(kChildrenMax);
  record.volumes.assign(kVolumesMax, volume);
  for (std::uint32_t i = 0; i < kDisksMax; ++i) record.spares.push_back(i);
  const Result<Replica> replica =
      DecodeReplica(EncodeReplica({.record = record}, Offset(0)), Offset(0));
  ASSERT_TRUE(replica.has_value()) << replica.error().ToString();
  EXPECT_EQ(replica->record, record);
}

TEST(Records, NoDamagedByteIsAccepted) {
  const std::vector<std::byte> good =
      EncodeReplica({.record = Sample(), .disk = 0, .promised = 9}, Offset(0));
  std::uint32_t length = 0;
  std::memcpy(&length, good.data() + 12, 4);
  for (std::size_t i = 0; i < length + 8U; ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{0x40};
    EXPECT_FALSE(DecodeReplica(bad, Offset(0)).has_value()) << i;
  }
  for (std::size_t size = 0; size < length + 8U; ++size) {
    EXPECT_FALSE(DecodeReplica(ConstView(good).first(size), Offset(0)).has_value()) << size;
  }
}

TEST(Records, ARecordAtAnotherPlaceDoesNotCheck) {
  const std::vector<std::byte> bytes =
      EncodeReplica({.record = Sample(), .disk = 0, .promised = 9}, Offset(0));
  const Result<Replica> replica = DecodeReplica(bytes, Offset(kSlotSize.count()));
  ASSERT_FALSE(replica.has_value());
  EXPECT_EQ(replica.error().code(), Errc::kCorrupt);
  EXPECT_THAT(replica.error().ToString(), HasSubstr("at byte 65536"));
}

TEST(Records, NothingOfOursIsNotFound) {
  const Result<Replica> replica = DecodeReplica(std::vector<std::byte>(4096), Offset(0));
  ASSERT_FALSE(replica.has_value());
  EXPECT_EQ(replica.error().code(), Errc::kNotFound);
}

// Damage that carries a right CRC, as of a build with a fault: decoded whole or refused, and what
// is decoded makes sense.
TEST(Records, DecodingTrustsNothing) {
  Random random(Seed{7});
  const std::vector<std::byte> good =
      EncodeReplica({.record = Sample(), .disk = 0, .promised = 9}, Offset(0));
  std::uint32_t length = 0;
  std::memcpy(&length, good.data() + 12, 4);
  std::size_t refused = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<std::byte> bad = good;
    for (std::uint64_t i = 1 + random.Below(3); i > 0; --i) {
      bad[16 + random.Below(length - 16)] = static_cast<std::byte>(random.Below(256));
    }
    const std::uint64_t crc = Crc64(ConstView(bad).first(length), 0);
    std::memcpy(bad.data() + length, &crc, sizeof(crc));
    const Result<Replica> replica = DecodeReplica(bad, Offset(0));
    if (!replica) {
      EXPECT_FALSE(replica.error().note().empty());
      ++refused;
      continue;
    }
    EXPECT_TRUE(CheckRecord(replica->record).has_value());
    EXPECT_LT(replica->disk, replica->record.disks.size());
  }
  EXPECT_GT(refused, 5'000U);
}

TEST(Records, AnotherVersionIsNamed) {
  std::vector<std::byte> bytes =
      EncodeReplica({.record = Sample(), .disk = 0, .promised = 9}, Offset(0));
  bytes[8] = std::byte{9};
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 12, 4);
  const std::uint64_t crc = Crc64(ConstView(bytes).first(length), 0);
  std::memcpy(bytes.data() + length, &crc, sizeof(crc));
  const Result<Replica> replica = DecodeReplica(bytes, Offset(0));
  ASSERT_FALSE(replica.has_value());
  EXPECT_EQ(replica.error().code(), Errc::kUnsupported);
  EXPECT_THAT(replica.error().ToString(), HasSubstr("version 9; this build knows version 1"));
}

TEST(Records, WhatRefersToNothingOrTwiceIsRefused) {
  SetRecord record = Sample();
  record.spares = {3, 17};
  const Result<void> sound = CheckRecord(record);
  ASSERT_FALSE(sound.has_value());
  EXPECT_THAT(sound.error().note(), HasSubstr("disk 3 is used twice"));
  EXPECT_THAT(sound.error().note(), HasSubstr("disk 17 is used but not there"));
  record = Sample();
  record.volumes[0].children[0] = {.source = ChildEntry::Source::kVolume, .index = 1};
  EXPECT_FALSE(CheckRecord(record).has_value()) << "a volume of one that stands after it";
}

}  // namespace
}  // namespace labrack::volume
