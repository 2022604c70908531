#include "storage/block/disk/rotating_disk.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

constexpr std::uint32_t kQueueDepthMax = 256;

bool Cancelled(const IoContext& io) { return io.cancel != nullptr && io.cancel->cancelled(); }

Bytes SizeOf(const RotatingDiskOptions& options, Bytes capacity) {
  return options.size == Bytes(0) ? capacity - capacity % options.block_size : options.size;
}

Result<void> ValidateCaches(const RotatingDiskOptions& options) {
  if (options.cache_segments > 0 && (options.segment_size == Bytes(0) ||
                                     !IsAligned(options.segment_size, MechanicsOptions::kSector))) {
    return Fail(Errc::kInvalidArgument, "track cache", "a segment holds sectors of 512 bytes");
  }
  if (options.write_cache == WriteCacheMode::kWriteBack &&
      (options.write_cache_size == Bytes(0) || options.write_back_max == Bytes(0))) {
    return Fail(Errc::kInvalidArgument, "write cache", "to write back it has a size, and runs");
  }
  return {};
}

}  // namespace

Result<void> RotatingDiskOptions::Validate() const {
  if (Result<void> valid = mechanics.Validate(); !valid) return valid;
  if (block_size == Bytes(0) || !IsAligned(block_size, MechanicsOptions::kSector)) {
    return Fail(Errc::kInvalidArgument, "block size", "is a multiple of a sector, 512 bytes");
  }
  const Bytes capacity = Mechanics(mechanics).capacity();
  if (!IsAligned(size, block_size) || size > capacity || capacity < block_size) {
    return Fail(Errc::kInvalidArgument, "size",
                "is a multiple of the block size, " + std::to_string(capacity.count()) +
                    " bytes at most, which is what the platters hold");
  }
  for (const std::int64_t time :
       {phase_ns, read_command_ns, write_command_ns, wait_max_ns, write_back_idle_ns}) {
    if (time < 0) return Fail(Errc::kInvalidArgument, "times", "no time is negative");
  }
  if (queue_depth == 0 || queue_depth > kQueueDepthMax) {
    return Fail(Errc::kInvalidArgument, "queue depth",
                "is from 1 to " + std::to_string(kQueueDepthMax));
  }
  return ValidateCaches(*this);
}

Result<std::unique_ptr<RotatingDisk>> RotatingDisk::Create(runtime::Reactor& reactor,
                                                           RotatingDiskOptions options, Bus& bus) {
  if (Result<void> valid = options.Validate(); !valid) return std::unexpected(valid.error());
  return std::unique_ptr<RotatingDisk>(new RotatingDisk(reactor, std::move(options), bus));
}

RotatingDisk::RotatingDisk(runtime::Reactor& reactor, RotatingDiskOptions options, Bus& bus)
    : ModelDisk(reactor,
                {.geometry = {.size = SizeOf(options, Mechanics(options.mechanics).capacity()),
                              .block_size = options.block_size},
                 .queue_depth = options.queue_depth}),
      options_(std::move(options)),
      mechanics_(options_.mechanics),
      bus_(bus),
      track_cache_(options_.cache_segments, options_.segment_size, mechanics_.capacity()),
      cache_open_(reactor) {
  queue_.reserve(options_.queue_depth);
  cache_open_.Set();
}

// --- commands ---

Task<ModelDisk::Served> RotatingDisk::ServeRead(IoContext io, Offset at, Bytes length) {
  bool on = co_await TakeCommand(options_.read_command_ns);
  if (!on) co_return Served::kNoPower;
  Advance(Now());
  TimePoint done{};
  const TrackCache::Segment* segment = track_cache_.Find(at, length);
  if (segment != nullptr || write_cache_.Holds(at, length)) {
    ++counted().cache_hits;
    if (segment != nullptr) ResumeReadAhead(*segment, Now());
    done = bus_.Take(Now(), length);
  } else if (AboutToPass(at)) {
    on = co_await ReadOn(at, length);
    if (!on) co_return Served::kNoPower;
    done = bus_.TakeUntil(Now(), length);
  } else {
    Served served = co_await ReadFromMedium(io, at, length);
    if (served != Served::kYes) co_return served;
    done = bus_.TakeUntil(Now(), length);
  }
  counted().bus += done - Now();
  on = co_await SleepUntil(done);
  co_return on ? Served::kYes : Served::kNoPower;
}

Task<ModelDisk::Served> RotatingDisk::ServeWrite(IoContext io, Offset at, Bytes length,
                                                 DiskImage::WriteId id) {
  bool on = co_await TakeCommand(options_.write_command_ns);
  if (!on) co_return Served::kNoPower;
  Advance(Now());
  track_cache_.Invalidate(at, length);
  const TimePoint data_at = bus_.Take(Now(), length);
  const bool cached = options_.write_cache == WriteCacheMode::kWriteBack && !io.durable &&
                      length <= options_.write_cache_size;
  Task<Served> written =
      cached ? WriteToCache(at, length, id, data_at) : WriteToMedium(io, at, length, id, data_at);
  Served served = co_await std::move(written);
  co_return served;
}

Task<ModelDisk::Served> RotatingDisk::ServeFlush(IoContext) {
  bool on = co_await TakeCommand(options_.read_command_ns);
  if (!on) co_return Served::kNoPower;
  Advance(Now());
  if (write_cache_.empty() && !run_) co_return Served::kYes;
  if (flushing_++ == 0) cache_open_.Reset();
  ArmRequest request{.at = Offset(0), .write = true, .first = true};
  Served served = co_await TakeArm(&request);
  if (served != Served::kYes) co_return served;
  while (!write_cache_.empty()) {
    on = co_await WriteBackRun();
    if (!on) co_return Served::kNoPower;
  }
  ReleaseArm();
  if (--flushing_ == 0) cache_open_.Set();
  co_return Served::kYes;
}

Task<bool> RotatingDisk::TakeCommand(std::int64_t takes_ns) {
  const Nanoseconds takes(takes_ns);
  processor_free_at_ = std::max(processor_free_at_, Now()) + takes;
  counted().command += takes;
  return SleepUntil(processor_free_at_);
}

void RotatingDisk::LosePower() {
  for (ArmRequest* request : queue_) {
    if (request->suspended) reactor().Wake(request->waiter);
  }
  queue_.clear();
  arm_taken_ = false;
  arm_free_at_ = Now();
  processor_free_at_ = Now();
  position_ = {};
  read_ahead_ = {};
  track_cache_.Clear();
  write_cache_.Clear();
  run_.reset();
  flushing_ = 0;
  cache_open_.Set();
}

// --- the arm ---

// Waits until whoever has the arm picks this request.
class RotatingDisk::ArmTurn {
 public:
  ArmTurn(runtime::Reactor& reactor, ArmRequest& request) : reactor_(reactor), request_(request) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    request_.waiter.handle = handle;
    request_.waiter.what = "the arm of a disk";
    request_.suspended = true;
    reactor_.Wait(request_.waiter);
  }
  void await_resume() const {}

 private:
  runtime::Reactor& reactor_;
  ArmRequest& request_;
};

// A run that is being written back is not interrupted; who comes meanwhile is chosen among.
Task<ModelDisk::Served> RotatingDisk::TakeArm(ArmRequest* request) {
  Advance(Now());
  request->since = Now();
  queue_.push_back(request);
  bool picked = false;
  if (!arm_taken_) {
    arm_taken_ = true;
    if (run_) {
      bool on = co_await SleepUntil(arm_free_at_);
      if (!on) co_return Served::kNoPower;
      FinishRun();
    }
    ArmRequest& next = PickNext();
    picked = &next == request;
    if (!picked) reactor().Wake(next.waiter);
  }
  if (!picked) {
    ArmTurn turn(reactor(), *request);
    co_await turn;
    if (!powered()) co_return Served::kNoPower;
  }
  counted().queue += Now() - request->since;
  co_return Served::kYes;
}

void RotatingDisk::ReleaseArm() {
  arm_free_at_ = Now();
  write_back_from_ = Now() + Nanoseconds(options_.write_back_idle_ns);
  if (queue_.empty()) {
    arm_taken_ = false;
  } else {
    reactor().Wake(PickNext().waiter);
  }
}

RotatingDisk::ArmRequest& RotatingDisk::PickNext() {
  StopReadAhead(Now());
  const auto next = queue_.begin() + static_cast<std::ptrdiff_t>(IndexOfNext());
  ArmRequest& request = **next;
  queue_.erase(next);
  return request;
}

std::size_t RotatingDisk::IndexOfNext() {
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    if (queue_[i]->first) return i;
  }
  if (Now() - queue_.front()->since >= Nanoseconds(options_.wait_max_ns)) return 0;
  switch (options_.scheduler) {
    case DiskScheduler::kFifo:
      return 0;
    case DiskScheduler::kScan:
      return IndexByScan();
    case DiskScheduler::kSatf:
      return IndexBySatf();
  }
  LABRACK_CHECK(false);
}

// The nearest ahead; when nothing is ahead, it turns round.
std::size_t RotatingDisk::IndexByScan() {
  for (int turn = 0; turn < 2; ++turn) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const Offset at = queue_[i]->at;
      const bool ahead = upwards_ ? at >= arm_at_ : at <= arm_at_;
      if (!ahead) continue;
      const bool nearer = !best || (upwards_ ? at < queue_[*best]->at : at > queue_[*best]->at);
      if (nearer) best = i;
    }
    if (best) return *best;
    upwards_ = !upwards_;
  }
  return 0;
}

std::size_t RotatingDisk::IndexBySatf() const {
  if (queue_.size() == 1) return 0;
  const TimePoint begin = Now() + Nanoseconds(options_.phase_ns);
  std::size_t best = 0;
  Nanoseconds shortest = Nanoseconds::max();
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const Nanoseconds time =
        mechanics_.Positioning(position_, queue_[i]->at, queue_[i]->write, begin);
    if (time >= shortest) continue;
    shortest = time;
    best = i;
  }
  return best;
}

Mechanics::Times RotatingDisk::Move(Offset at, Bytes length, bool write, TimePoint begin) {
  const Mechanics::Times times =
      mechanics_.Serve(position_, at, length, write, begin + Nanoseconds(options_.phase_ns));
  arm_at_ = at + length;
  counted().seek += times.seek;
  counted().rotation += times.rotation;
  counted().transfer += times.transfer;
  return times;
}

// While nobody asks: first the heads read on, then what is cached is written.
void RotatingDisk::Advance(TimePoint now) {
  if (arm_taken_) return;
  for (;;) {
    if (run_) {
      if (arm_free_at_ > now) return;
      FinishRun();
    }
    const TimePoint begin = std::max(arm_free_at_, write_back_from_);
    if (write_cache_.empty() || begin >= now) break;
    StopReadAhead(begin);
    BeginRun(begin);
  }
  AdvanceReadAhead(now);
}

// --- reading ---

Task<ModelDisk::Served> RotatingDisk::ReadFromMedium(IoContext io, Offset at, Bytes length) {
  ArmRequest request{.at = at};
  Served served = co_await TakeArm(&request);
  if (served != Served::kYes) co_return served;
  if (Cancelled(io)) {
    ReleaseArm();
    co_return Served::kCancelled;
  }
  const Mechanics::Times times = Move(at, length, false, Now());
  bool on = co_await SleepUntil(Now() + times.total());
  if (!on) co_return Served::kNoPower;
  TrackCache::Segment* segment = track_cache_.Insert(at, length);
  if (segment != nullptr) read_ahead_ = {.segment = segment, .from = at + length, .since = Now()};
  ReleaseArm();
  co_return Served::kYes;
}

// The heads are on their way through the segment, and have not passed its end yet.
bool RotatingDisk::AboutToPass(Offset at) const {
  const TrackCache::Segment* segment = read_ahead_.segment;
  return !arm_taken_ && !run_ && segment != nullptr && !read_ahead_.resting &&
         at >= segment->begin && at <= segment->limit;
}

Task<bool> RotatingDisk::ReadOn(Offset at, Bytes length) {
  arm_taken_ = true;
  const Offset end = at + length;
  const TimePoint begin = Now();
  const TimePoint passed =
      read_ahead_.since + mechanics_.Continuing(read_ahead_.from, end - read_ahead_.from);
  bool on = co_await SleepUntil(passed);
  if (!on) co_return false;
  counted().transfer += Now() - begin;
  // What lies between has been read on the way, unless it was overwritten meanwhile.
  TrackCache::Segment* on_the_way = read_ahead_.segment;
  if (at <= on_the_way->limit) on_the_way->end = std::max(on_the_way->end, at);
  TrackCache::Segment* segment = track_cache_.Insert(at, length);
  position_ = mechanics_.PositionOf(end - MechanicsOptions::kSector);
  arm_at_ = end;
  read_ahead_ = {};
  if (segment != nullptr) read_ahead_ = {.segment = segment, .from = end, .since = passed};
  ReleaseArm();
  co_return true;
}

// A segment that was full has room again, since its reader has gone on.
void RotatingDisk::ResumeReadAhead(const TrackCache::Segment& segment, TimePoint now) {
  if (arm_taken_ || run_ || !read_ahead_.resting || read_ahead_.segment != &segment) return;
  if (segment.end >= segment.limit) return;
  const Nanoseconds positioning =
      mechanics_.Positioning(position_, segment.end, false, now + Nanoseconds(options_.phase_ns));
  read_ahead_.from = segment.end;
  read_ahead_.since = now + positioning;
  read_ahead_.resting = false;
}

void RotatingDisk::AdvanceReadAhead(TimePoint now) {
  TrackCache::Segment* segment = read_ahead_.segment;
  if (segment == nullptr || read_ahead_.resting) return;
  if (segment->limit <= read_ahead_.from) {  // full, or overwritten meanwhile
    read_ahead_.resting = true;
    return;
  }
  const Bytes wanted = segment->limit - read_ahead_.from;
  const Bytes passed = mechanics_.PassedAfter(read_ahead_.from, wanted, now - read_ahead_.since);
  if (passed == Bytes(0)) return;
  segment->end = std::max(segment->end, read_ahead_.from + passed);
  arm_at_ = read_ahead_.from + passed;
  position_ = mechanics_.PositionOf(arm_at_ - MechanicsOptions::kSector);
  read_ahead_.resting = passed == wanted;
}

void RotatingDisk::StopReadAhead(TimePoint now) {
  AdvanceReadAhead(now);
  read_ahead_ = {};
}

// --- writing ---

// The write begins when its data would arrive in time; later, it misses its block by a revolution.
Task<ModelDisk::Served> RotatingDisk::WriteToMedium(IoContext io, Offset at, Bytes length,
                                                    DiskImage::WriteId id, TimePoint data_at) {
  ArmRequest request{.at = at, .write = true};
  Served served = co_await TakeArm(&request);
  if (served != Served::kYes) co_return served;
  if (Cancelled(io)) {
    ReleaseArm();
    co_return Served::kCancelled;
  }
  TimePoint end = Now() + Move(at, length, true, Now()).total();
  while (end < data_at) {
    end += Nanoseconds(options_.mechanics.revolution_ns);
    counted().rotation += Nanoseconds(options_.mechanics.revolution_ns);
  }
  bool on = co_await SleepUntil(end);
  if (!on) co_return Served::kNoPower;
  Persist(id);
  if (options_.write_cache == WriteCacheMode::kWriteThrough) track_cache_.Insert(at, length);
  ReleaseArm();
  co_return Served::kYes;
}

Task<ModelDisk::Served> RotatingDisk::WriteToCache(Offset at, Bytes length, DiskImage::WriteId id,
                                                   TimePoint data_at) {
  counted().bus += data_at - Now();
  bool on = co_await SleepUntil(data_at);
  if (!on) co_return Served::kNoPower;
  co_await cache_open_.Wait();
  if (!powered()) co_return Served::kNoPower;
  Advance(Now());
  if (!HasRoom(length)) {
    on = co_await MakeRoom(length);
    if (!on) co_return Served::kNoPower;
  }
  if (write_cache_.empty()) {
    const TimePoint idle = Now() + Nanoseconds(options_.write_back_idle_ns);
    write_back_from_ = std::max(write_back_from_, idle);
  }
  write_cache_.Add(at, length, id);
  co_return Served::kYes;
}

bool RotatingDisk::HasRoom(Bytes length) const {
  const Bytes being_written = run_ ? run_->held : Bytes(0);
  return write_cache_.bytes() + being_written + length <= options_.write_cache_size;
}

Task<bool> RotatingDisk::MakeRoom(Bytes length) {
  while (!HasRoom(length)) {
    ArmRequest request{.at = write_cache_.empty() ? arm_at_ : write_cache_.NextPlace(),
                       .write = true};
    Served served = co_await TakeArm(&request);
    if (served != Served::kYes) co_return false;
    while (!HasRoom(length)) {
      bool on = co_await WriteBackRun();
      if (!on) co_return false;
    }
    ReleaseArm();
  }
  co_return true;
}

Task<bool> RotatingDisk::WriteBackRun() {
  BeginRun(Now());
  bool on = co_await SleepUntil(arm_free_at_);
  if (on) FinishRun();
  co_return on;
}

void RotatingDisk::BeginRun(TimePoint begin) {
  run_ = write_cache_.TakeRun(options_.write_back_max);
  arm_free_at_ = begin + Move(run_->at, run_->length, true, begin).total();
}

void RotatingDisk::FinishRun() {
  ++counted().write_backs;
  for (const DiskImage::WriteId id : run_->ids) Persist(id);
  run_.reset();
  write_back_from_ = arm_free_at_;
}

}  // namespace labrack::block
