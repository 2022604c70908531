// Goal: the log protocols of a RAID-5 are right in *every* state that a power cut can leave, not
// only in those that seeds reach.
// Method: a few small writes are done once, on devices that write down all that happens. Then, for
// every moment of it, for every subset of the blocks that were not durable then, the volume is
// assembled, with all columns and without each one, and its content is compared.
//
//   moment:  |w w|W W|f f|w ...      durable: completed with FUA, or before a completed flush began
//                  ^ cut             pending: all else that was begun; each block arrives or not
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/runtime/sim_reactor.h"
#include "storage/runtime/task_group.h"
#include "storage/volume/raid5.h"

namespace labrack::sim {
namespace {

using block::IoContext;
using runtime::Task;
using volume::Component;
using volume::ParityLogMode;
using volume::ParityLogShape;
using volume::Raid5;
using volume::Raid5Options;
using volume::State;

constexpr std::size_t kBlock = 512;
constexpr std::size_t kColumns = 3;
constexpr Bytes kInterlace(2 * kBlock);
constexpr std::uint64_t kLines = 2;
constexpr std::size_t kVolumeBlocks = 2 * kLines * (kColumns - 1);

using Image = std::vector<std::byte>;
using Images = std::array<Image, kColumns>;

struct Event {
  enum class Kind { kBeginWrite, kEndWrite, kBeginFlush, kEndFlush, kBegun, kAcknowledged } kind;
  std::size_t disk = 0;
  std::size_t number = 0;  // of the write or flush; of the volume's write for the last two
  std::size_t at = 0;
  bool durable = false;
  Image bytes = {};
};

// Reads and writes memory; with a history, takes time and writes down what happens.
class HistoryDisk final : public block::BlockDevice {
 public:
  HistoryDisk(runtime::Reactor& reactor, Image& image, std::size_t number,
              std::vector<Event>* history, std::size_t* operations)
      : reactor_(reactor),
        image_(image),
        number_(number),
        history_(history),
        operations_(operations) {}

  block::Geometry geometry() const override { return {Bytes(image_.size()), Bytes(kBlock)}; }
  Task<Result<void>> Read(IoContext, Offset at, MutableView into) override {
    std::copy_n(image_.begin() + static_cast<std::ptrdiff_t>(at.value()), into.size(),
                into.begin());
    co_return Result<void>{};
  }
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override {
    std::ranges::copy(from, image_.begin() + static_cast<std::ptrdiff_t>(at.value()));
    if (history_ == nullptr) co_return Result<void>{};
    const std::size_t number = (*operations_)++;
    history_->push_back({Event::Kind::kBeginWrite, number_, number, at.value(), io.durable,
                         Image(from.begin(), from.end())});
    co_await Pass();
    history_->push_back({.kind = Event::Kind::kEndWrite, .number = number});
    co_return Result<void>{};
  }
  Task<Result<void>> Flush(IoContext) override {
    if (history_ == nullptr) co_return Result<void>{};
    const std::size_t number = (*operations_)++;
    history_->push_back({.kind = Event::Kind::kBeginFlush, .disk = number_, .number = number});
    co_await Pass();
    history_->push_back({.kind = Event::Kind::kEndFlush, .disk = number_, .number = number});
    co_return Result<void>{};
  }

 private:
  Task<void> Pass() {
    const TimePoint until = reactor_.Now() + Nanoseconds(1000 + static_cast<int>(number_));
    Result<void> slept = co_await reactor_.SleepUntil(until, nullptr);
    LABRACK_CHECK(slept.has_value());
  }

  runtime::Reactor& reactor_;
  Image& image_;
  std::size_t number_;
  std::vector<Event>* history_;
  std::size_t* operations_;
};

Bytes LogSize(ParityLogMode mode, std::size_t slots) {
  return ParityLogShape::LogSize(mode, slots, Bytes(kBlock), kInterlace);
}

std::byte Mark(std::size_t version) { return static_cast<std::byte>(version); }

// What is pending and what is durable at a moment.
struct Moment {
  Images durable;
  struct Pending {
    std::size_t disk;
    std::size_t at;
    Image bytes;
  };
  std::map<std::size_t, Pending> pending;                // by number
  std::set<std::size_t> fua;                             // of the writes
  std::set<std::size_t> completed;                       // likewise
  std::map<std::size_t, std::set<std::size_t>> covered;  // by flushes in flight
  std::array<std::size_t, kVolumeBlocks> floor{};
  std::array<std::size_t, kVolumeBlocks> high{};
};

class States {
 public:
  States(ParityLogMode mode, std::size_t slots) : mode_(mode), log_size_(LogSize(mode, slots)) {
    options_.interlace = kInterlace;
    options_.parity_log = mode;
    options_.volume_id = 77;
    options_.zeroed = true;
    for (Image& image : images_) image.resize((log_size_ + kInterlace * kLines).size());
  }

  struct Request {
    std::size_t block;
    std::size_t count;
  };
  // Batches, one after the other, of writes side by side; an empty one closes the volume and opens
  // it again.
  using Requests = std::vector<std::vector<Request>>;
  void Record(const Requests& requests);
  // Goes through every state; the number of assemblies.
  std::size_t Check();
  const std::string& wrong() const { return wrong_; }

 private:
  Task<void> RecordAll(Requests requests);
  Task<void> RecordOne(Raid5* volume, std::size_t number);
  void Advance(Moment& moment, const Event& event);
  void CheckMoment(const Moment& moment);
  void CheckState(const Moment& moment, const Images& images, std::optional<std::size_t> without);
  Task<void> Look(Images* images, std::optional<std::size_t> without, const Moment* moment);
  std::vector<Component> Parts(std::vector<std::unique_ptr<HistoryDisk>>& disks) const;

  ParityLogMode mode_;
  Bytes log_size_;
  Raid5Options options_;
  runtime::SimReactor reactor_{Seed{5}};
  Images images_;
  Images initial_;
  std::vector<Event> history_;
  std::vector<Request> requests_;
  std::size_t operations_ = 0;
  std::set<std::array<Image, kColumns>> seen_;
  std::size_t assemblies_ = 0;
  std::string wrong_;
};

std::vector<Component> States::Parts(std::vector<std::unique_ptr<HistoryDisk>>& disks) const {
  std::vector<Component> parts;
  for (const std::unique_ptr<HistoryDisk>& disk : disks) {
    parts.push_back({.device = disk.get(),
                     .data_at = Offset(log_size_.count()),
                     .data_size = kInterlace * kLines,
                     .log_at = Offset(0),
                     .log_size = log_size_});
  }
  return parts;
}

void States::Record(const Requests& requests) { reactor_.Run(RecordAll(requests)); }

Task<void> States::RecordOne(Raid5* volume, std::size_t number) {
  const Request request = requests_[number];
  const Image data(request.count * kBlock, Mark(number + 1));
  history_.push_back({.kind = Event::Kind::kBegun, .number = number});
  Result<void> written = co_await volume->Write({}, Offset(request.block * kBlock), data);
  LABRACK_CHECK(written.has_value());
  history_.push_back({.kind = Event::Kind::kAcknowledged, .number = number});
}

Task<void> States::RecordAll(Requests requests) {
  std::vector<std::unique_ptr<HistoryDisk>> disks;
  for (std::size_t i = 0; i < kColumns; ++i) {
    disks.push_back(
        std::make_unique<HistoryDisk>(reactor_, images_[i], i, &history_, &operations_));
  }
  Result<std::unique_ptr<Raid5>> volume =
      co_await Raid5::Open(reactor_, Parts(disks), options_, nullptr);
  LABRACK_CHECK(volume.has_value());
  history_.clear();
  initial_ = images_;
  for (const std::vector<Request>& batch : requests) {
    if (batch.empty()) {
      Result<void> closed = co_await (*volume)->Close({});
      LABRACK_CHECK(closed.has_value());
      volume = co_await Raid5::Open(reactor_, Parts(disks), options_, nullptr);
      LABRACK_CHECK(volume.has_value());
      continue;
    }
    runtime::TaskGroup group(reactor_);
    for (const Request& request : batch) {
      requests_.push_back(request);
      group.Spawn(RecordOne(volume->get(), requests_.size() - 1));
    }
    co_await group.Join();
  }
  Result<void> closed = co_await (*volume)->Close({});
  LABRACK_CHECK(closed.has_value());
}

void Apply(Images& images, const Moment::Pending& write) {
  std::ranges::copy(write.bytes,
                    images[write.disk].begin() + static_cast<std::ptrdiff_t>(write.at));
}

void States::Advance(Moment& moment, const Event& event) {
  switch (event.kind) {
    case Event::Kind::kBeginWrite:
      moment.pending[event.number] = {event.disk, event.at, event.bytes};
      if (event.durable) moment.fua.insert(event.number);
      break;
    case Event::Kind::kEndWrite:
      moment.completed.insert(event.number);
      if (moment.fua.contains(event.number)) {
        Apply(moment.durable, moment.pending[event.number]);
        moment.pending.erase(event.number);
      }
      break;
    case Event::Kind::kBeginFlush:
      moment.covered[event.number] = moment.completed;
      break;
    case Event::Kind::kEndFlush:
      for (auto write = moment.pending.begin(); write != moment.pending.end();) {
        const bool here = write->second.disk == event.disk;
        if (here && moment.covered[event.number].contains(write->first)) {
          Apply(moment.durable, write->second);
          write = moment.pending.erase(write);
        } else {
          ++write;
        }
      }
      break;
    case Event::Kind::kBegun:
    case Event::Kind::kAcknowledged: {
      const Request& request = requests_[event.number];
      for (std::size_t i = request.block; i < request.block + request.count; ++i) {
        moment.high[i] = event.number + 1;
        if (event.kind == Event::Kind::kAcknowledged) moment.floor[i] = event.number + 1;
      }
      break;
    }
  }
}

std::size_t States::Check() {
  Moment moment;
  moment.durable = initial_;
  CheckMoment(moment);
  for (const Event& event : history_) {
    Advance(moment, event);
    if (wrong_.empty()) CheckMoment(moment);
  }
  return assemblies_;
}

// All subsets of the pending blocks; where they are too many, of the pending writes.
void States::CheckMoment(const Moment& moment) {
  std::vector<Moment::Pending> units;
  for (const auto& [number, write] : moment.pending) {
    for (std::size_t done = 0; done < write.bytes.size(); done += kBlock) {
      const auto begin = write.bytes.begin() + static_cast<std::ptrdiff_t>(done);
      units.push_back({write.disk, write.at + done, Image(begin, begin + kBlock)});
    }
  }
  if (units.size() > 10) {
    units.clear();
    for (const auto& [number, write] : moment.pending) units.push_back(write);
  }
  ASSERT_LE(units.size(), 12U);
  seen_.clear();
  for (std::size_t subset = 0; subset < std::size_t{1} << units.size(); ++subset) {
    Images images = moment.durable;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if ((subset >> i & 1) == 1) Apply(images, units[i]);
    }
    if (!seen_.insert(images).second) continue;
    CheckState(moment, images, std::nullopt);
    for (std::size_t column = 0; column < kColumns; ++column) CheckState(moment, images, column);
    if (!wrong_.empty()) return;
  }
}

void States::CheckState(const Moment& moment, const Images& images,
                        std::optional<std::size_t> without) {
  ++assemblies_;
  Images copy = images;
  reactor_.Run(Look(&copy, without, &moment));
}

Task<void> States::Look(Images* images, std::optional<std::size_t> without, const Moment* moment) {
  std::vector<std::unique_ptr<HistoryDisk>> disks;
  for (std::size_t i = 0; i < kColumns; ++i) {
    disks.push_back(std::make_unique<HistoryDisk>(reactor_, (*images)[i], i, nullptr, nullptr));
  }
  std::vector<Component> parts = Parts(disks);
  if (without) {
    parts[*without].state = State::kFailed;
    parts[*without].device = nullptr;
  }
  Result<std::unique_ptr<Raid5>> volume =
      co_await Raid5::Open(reactor_, std::move(parts), options_, nullptr);
  if (!volume) {
    wrong_ = volume.error().ToString();
    co_return;
  }
  const volume::Raid5Layout& layout = (*volume)->layout();
  for (std::size_t block = 0; block < kVolumeBlocks && wrong_.empty(); ++block) {
    Image data(kBlock);
    Result<void> read = co_await (*volume)->Read({}, Offset(block * kBlock), data);
    const auto version = static_cast<std::size_t>(data[0]);
    const bool whole = std::ranges::count(data, data[0]) == static_cast<std::ptrdiff_t>(kBlock);
    const volume::Raid5Layout::Place place = layout.Find(Offset(block * kBlock));
    const bool in_flight = moment->high[block] != moment->floor[block];
    const bool lost = mode_ == ParityLogMode::kPartialParity && in_flight &&
                      without == layout.DataColumn(place.line, place.index);
    const bool right =
        read && whole && version >= moment->floor[block] && version <= moment->high[block];
    if (right || lost) continue;
    wrong_ = "block " + std::to_string(block) + " gave " +
             (whole ? "version " + std::to_string(version) : std::string("a mixture")) +
             "; it may give " + std::to_string(moment->floor[block]) + " to " +
             std::to_string(moment->high[block]) +
             (without ? " without column " + std::to_string(*without) : std::string());
  }
  if (!without && wrong_.empty()) {
    Result<std::uint64_t> unequal = co_await (*volume)->CheckParity({}, false);
    if (!unequal || *unequal > 0) wrong_ = "parity is wrong after the assembly";
  }
  Result<void> closed = co_await (*volume)->Close({});
  LABRACK_CHECK(closed.has_value());
}

void ExpectEveryStateRight(ParityLogMode mode, std::size_t slots,
                           const States::Requests& requests) {
  States states(mode, slots);
  states.Record(requests);
  const std::size_t assemblies = states.Check();
  EXPECT_EQ(states.wrong(), "");
  EXPECT_GT(assemblies, 400U);
  testing::Test::RecordProperty("assemblies", static_cast<int>(assemblies));
}

// One slot: every write needs the one before it freed. The third is of another line, the fourth of
// both chunks of the first.
const States::Requests kOneSlot{{{0, 1}}, {{0, 1}}, {{4, 1}}, {{1, 2}}};
// Two slots with what two writes of a block have left, and then two writes side by side that take
// both: the older of what was left may outlive the newer.
const States::Requests kSideBySide{{{0, 1}}, {{0, 1}}, {}, {{1, 1}, {4, 1}}};

TEST(Raid5States, EveryStateOfThePrewriteProtocolAssembles) {
  ExpectEveryStateRight(ParityLogMode::kPrewrite, 1, kOneSlot);
  ExpectEveryStateRight(ParityLogMode::kPrewrite, 2, kSideBySide);
}

TEST(Raid5States, EveryStateOfThePartialParityProtocolAssembles) {
  ExpectEveryStateRight(ParityLogMode::kPartialParity, 1, kOneSlot);
  ExpectEveryStateRight(ParityLogMode::kPartialParity, 2, kSideBySide);
}

}  // namespace
}  // namespace labrack::sim
