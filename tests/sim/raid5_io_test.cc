// Goal: a RAID-5 does the I/Os that its header says, with the purposes and depths that it says; bad
// components are refused with one clear error each.
// Method: devices in memory that write down what they were asked for.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/volume/raid5.h"

namespace labrack::sim {
namespace {

using block::IoContext;
using block::PriorityClass;
using block::Purpose;
using runtime::Task;
using volume::Component;
using volume::ParityLogMode;
using volume::ParityLogShape;
using volume::Raid5;
using volume::Raid5Options;

struct Asked {
  char kind;  // 'r', 'w', 'f'
  Purpose purpose;
  int depth;
  bool durable = false;
  bool waited_for = false;  // by the operation: it has the tally
  friend auto operator<=>(const Asked&, const Asked&) = default;
};

std::ostream& operator<<(std::ostream& out, const Asked& asked) {
  return out << asked.kind << " " << block::PurposeName(asked.purpose) << " depth " << asked.depth
             << (asked.durable ? " durable" : "") << (asked.waited_for ? "" : " behind");
}

class NotingDisk final : public block::BlockDevice {
 public:
  NotingDisk(Bytes size, Bytes block, std::vector<Asked>& asked)
      : geometry_({.size = size, .block_size = block}), bytes_(size.size()), asked_(asked) {}

  block::Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override {
    LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
    Note('r', io);
    if (gone) co_return Fail(Errc::kIo, "gone");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at.value()), into.size(),
                into.begin());
    co_return Result<void>{};
  }
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override {
    LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
    Note('w', io);
    if (gone) co_return Fail(Errc::kIo, "gone");
    std::ranges::copy(from, bytes_.begin() + static_cast<std::ptrdiff_t>(at.value()));
    co_return Result<void>{};
  }
  Task<Result<void>> Flush(IoContext io) override {
    Note('f', io);
    co_return Result<void>{};
  }

  bool gone = false;

 private:
  void Note(char kind, const IoContext& io) {
    asked_.push_back({kind, io.purpose, io.depth, io.durable, io.tally != nullptr});
  }

  block::Geometry geometry_;
  std::vector<std::byte> bytes_;
  std::vector<Asked>& asked_;
};

constexpr Bytes kInterlace = 8_KiB;

class Raid5Io : public testing::Test {
 protected:
  std::vector<Component> Parts(std::size_t columns, ParityLogMode mode) {
    const Bytes log = ParityLogShape::LogSize(mode, 8, 512_B, kInterlace);
    std::vector<Component> parts;
    for (std::size_t i = 0; i < columns; ++i) {
      disks_.push_back(std::make_unique<NotingDisk>(log + kInterlace * 8, 512_B, asked_));
      parts.push_back({.device = disks_.back().get(),
                       .data_at = Offset(log.count()),
                       .data_size = kInterlace * 8,
                       .log_at = Offset(0),
                       .log_size = log});
    }
    return parts;
  }
  void Open(std::size_t columns, ParityLogMode mode) {
    Raid5Options options{.interlace = kInterlace, .parity_log = mode, .volume_id = 5};
    options.zeroed = true;
    Result<std::unique_ptr<Raid5>> opened =
        reactor_.Run(Raid5::Open(reactor_, Parts(columns, mode), options, nullptr));
    ASSERT_TRUE(opened) << opened.error().ToString();
    volume_ = std::move(*opened);
    Write(Bytes(0), 2_KiB);  // the first marks a volume without a log as in use
  }
  void Write(Bytes at, Bytes length) {
    asked_.clear();
    block::IoTally tally;
    const std::vector<std::byte> data(length.size(), std::byte{0x5a});
    const IoContext io{.priority = PriorityClass::kSyncWrite, .tally = &tally};
    Result<void> written = reactor_.Run(volume_->Write(io, Offset(at.count()), data));
    EXPECT_TRUE(written) << written.error().ToString();
  }
  void Expect(std::vector<Asked> expected) {
    std::ranges::sort(expected);
    std::ranges::sort(asked_);
    EXPECT_EQ(asked_, expected);
  }
  void TearDown() override {
    if (volume_ == nullptr) return;
    Result<void> closed = reactor_.Run(volume_->Close({}));
    EXPECT_TRUE(closed) << closed.error().ToString();
  }
  Error Refusal(std::vector<Component> parts, Raid5Options options) {
    asked_.clear();
    Result<std::unique_ptr<Raid5>> opened =
        reactor_.Run(Raid5::Open(reactor_, std::move(parts), options, nullptr));
    if (opened) return Error(Errc::kInternal, "it was opened");
    EXPECT_EQ(std::ranges::count(asked_, 'w', &Asked::kind), 0) << "nothing is written";
    return opened.error();
  }

  runtime::SimReactor reactor_{Seed{1}};
  std::vector<Asked> asked_;
  std::vector<std::unique_ptr<NotingDisk>> disks_;
  std::unique_ptr<Raid5> volume_;
};

// The write of post 0: 6 I/Os in 3 stages, two of them before the acknowledgement.
TEST_F(Raid5Io, ASmallWriteWithPrewritesIsSixInThreeStages) {
  Open(4, ParityLogMode::kPrewrite);
  Write(2_KiB, 2_KiB);
  Expect({{'r', Purpose::kOldData, 1, false, true},
          {'r', Purpose::kOldParity, 1, false, true},
          {'w', Purpose::kPrewrite, 2, true, true},
          {'w', Purpose::kPrewrite, 2, true, true},
          {'w', Purpose::kUserData, 3, false, false},
          {'w', Purpose::kParity, 3, false, false}});
}

TEST_F(Raid5Io, ASmallWriteWithPartialParitiesIsFiveInThreeStages) {
  Open(4, ParityLogMode::kPartialParity);
  Write(2_KiB, 2_KiB);
  Expect({{'r', Purpose::kOldData, 1, false, true},
          {'r', Purpose::kOldParity, 1, false, true},
          {'w', Purpose::kPrewrite, 2, true, true},
          {'w', Purpose::kUserData, 3, true, true},
          {'w', Purpose::kParity, 3, true, true}});
}

TEST_F(Raid5Io, ASmallWriteWithoutALogIsFourInTwoStages) {
  Open(4, ParityLogMode::kNone);
  Write(2_KiB, 2_KiB);
  Expect({{'r', Purpose::kOldData, 1, false, true},
          {'r', Purpose::kOldParity, 1, false, true},
          {'w', Purpose::kUserData, 2, false, true},
          {'w', Purpose::kParity, 2, false, true}});
}

TEST_F(Raid5Io, AWholeLineReadsNothing) {
  Open(4, ParityLogMode::kNone);
  Write(kInterlace * 3, kInterlace * 3);
  const Asked data{'w', Purpose::kUserData, 1, false, true};
  Expect({data, data, data, {'w', Purpose::kParity, 1, false, true}});
}

TEST_F(Raid5Io, AWholeLineWithPrewritesGoesToTheLogFirst) {
  Open(4, ParityLogMode::kPrewrite);
  Write(kInterlace * 3, kInterlace * 3);
  const Asked logged{'w', Purpose::kPrewrite, 1, true, true};
  const Asked data{'w', Purpose::kUserData, 2, false, false};
  Expect(
      {logged, logged, logged, logged, data, data, data, {'w', Purpose::kParity, 2, false, false}});
}

TEST_F(Raid5Io, OfThreeColumnsTheOtherChunkIsReadInsteadOfTwo) {
  Open(3, ParityLogMode::kNone);
  Write(2_KiB, 2_KiB);
  Expect({{'r', Purpose::kOldData, 1, false, true},
          {'w', Purpose::kUserData, 2, false, true},
          {'w', Purpose::kParity, 2, false, true}});
}

TEST_F(Raid5Io, AReadIsOneAndADegradedOneReadsTheOthers) {
  Open(4, ParityLogMode::kNone);
  asked_.clear();
  block::IoTally tally;
  std::vector<std::byte> data(2048);
  ASSERT_TRUE(reactor_.Run(volume_->Read({.tally = &tally}, Offset(0), data)));
  Expect({{'r', Purpose::kUserData, 1, false, true}});
  disks_[0]->gone = true;
  Write(Bytes(0), 2_KiB);  // which the column does not take
  EXPECT_EQ(volume_->columns().NotOkay(), 0U);
  asked_.clear();
  ASSERT_TRUE(reactor_.Run(volume_->Read({.tally = &tally}, Offset(0), data)));
  EXPECT_EQ(data, std::vector<std::byte>(2048, std::byte{0x5a}));
  const Asked other{'r', Purpose::kRebuild, 1, false, true};
  Expect({other, other, other});
}

TEST_F(Raid5Io, WithoutPrewritesAFlushReachesEveryColumn) {
  Open(4, ParityLogMode::kNone);
  asked_.clear();
  ASSERT_TRUE(reactor_.Run(volume_->Flush({})));
  EXPECT_EQ(std::ranges::count(asked_, 'f', &Asked::kind), 4);
}

TEST_F(Raid5Io, WhatCannotMakeAVolumeIsRefusedAndNothingIsWritten) {
  const Raid5Options options{.interlace = kInterlace};
  const ParityLogMode mode = options.parity_log;
  EXPECT_NE(Refusal(Parts(2, mode), options).ToString().find("has 2 columns; it takes 3 to 32"),
            std::string::npos);
  Raid5Options odd = options;
  odd.interlace = 8_KiB + 100_B;
  EXPECT_NE(Refusal(Parts(3, mode), odd).ToString().find("multiple of the block of 512B"),
            std::string::npos);
  std::vector<Component> parts = Parts(3, mode);
  parts[1].data_size = 4_KiB;
  parts[2].log_size = 1_KiB;
  const std::string both = Refusal(parts, options).ToString();
  EXPECT_NE(both.find("column 1 holds 4KiB of data"), std::string::npos) << both;
  EXPECT_NE(both.find("column 2 has 1KiB for the parity log"), std::string::npos) << both;
  parts = Parts(3, mode);
  NotingDisk coarse(1_MiB, 4_KiB, asked_);
  parts[2].device = &coarse;
  EXPECT_NE(Refusal(parts, options).ToString().find("mixes sector sizes"), std::string::npos);
  parts = Parts(4, mode);
  parts[0].state = volume::State::kFailed;
  parts[3].device = nullptr;
  EXPECT_EQ(Refusal(parts, options).code(), Errc::kUnavailable);
}

TEST_F(Raid5Io, AVolumeOfAnotherLogIsRefused) {
  Open(4, ParityLogMode::kPrewrite);
  ASSERT_TRUE(reactor_.Run(volume_->Close({})));
  std::vector<Component> parts;
  for (std::size_t i = 0; i < 4; ++i) parts.push_back(volume_->columns()[i]);
  volume_.reset();
  Raid5Options other{.interlace = kInterlace, .parity_log = ParityLogMode::kPartialParity};
  other.volume_id = 5;
  const std::string refusal = Refusal(parts, other).ToString();
  EXPECT_NE(refusal.find("made with parity log prewrite; it is assembled with ppl"),
            std::string::npos)
      << refusal;
}

}  // namespace
}  // namespace labrack::sim
