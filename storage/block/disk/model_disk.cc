#include "storage/block/disk/model_disk.h"

#include <algorithm>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

bool Cancelled(const IoContext& io) { return io.cancel != nullptr && io.cancel->cancelled(); }

}  // namespace

// A command from its arrival to its answer.
class ModelDisk::Command {
 public:
  explicit Command(ModelDisk& disk) : disk_(disk) {
    if (disk_.commands_++ == 0) disk_.all_over_.Reset();
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() {
    if (has_slot_) disk_.slots_.Release();
    if (--disk_.commands_ == 0) disk_.all_over_.Set();
  }

  void HasSlot() { has_slot_ = true; }

 private:
  ModelDisk& disk_;
  bool has_slot_ = false;
};

ModelDisk::ModelDisk(runtime::Reactor& reactor, Options options)
    : reactor_(reactor),
      geometry_(options.geometry),
      slots_(reactor, options.queue_depth),
      power_(std::make_unique<runtime::CancelToken>()),
      all_over_(reactor) {
  LABRACK_CHECK(options.queue_depth > 0);
  all_over_.Set();
}

ModelDisk::~ModelDisk() { LABRACK_CHECK(commands_ == 0); }

Task<Result<void>> ModelDisk::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  if (into.empty()) co_return Result<void>();
  Command command(*this);
  co_await slots_.Acquire();
  command.HasSlot();
  if (!powered_) co_return std::unexpected(NoPower());
  if (Cancelled(io)) co_return Answer(Served::kCancelled);
  ++counters_.reads;
  Served served = co_await ServeRead(io, at, Bytes(into.size()));
  if (served == Served::kYes) image_.Read(at, into);
  reactor_.Record(at.value(), into.size());
  co_return Answer(served);
}

// From its beginning the write is one that a power cut decides about.
Task<Result<void>> ModelDisk::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  if (from.empty()) co_return Result<void>();
  Command command(*this);
  co_await slots_.Acquire();
  command.HasSlot();
  if (!powered_) co_return std::unexpected(NoPower());
  if (Cancelled(io)) co_return Answer(Served::kCancelled);
  ++counters_.writes;
  const DiskImage::WriteId id = image_.Write(at, from);
  Served served = co_await ServeWrite(io, at, Bytes(from.size()), id);
  // A write that is not made after all has taken effect none the less, as the contract allows.
  if (served == Served::kCancelled) Persist(id);
  reactor_.Record(at.value(), from.size());
  co_return Answer(served);
}

Task<Result<void>> ModelDisk::Flush(IoContext io) {
  Command command(*this);
  co_await slots_.Acquire();
  command.HasSlot();
  if (!powered_) co_return std::unexpected(NoPower());
  if (Cancelled(io)) co_return Answer(Served::kCancelled);
  ++counters_.flushes;
  Served served = co_await ServeFlush(io);
  reactor_.Record(counters_.flushes, 0);
  co_return Answer(served);
}

void ModelDisk::CutPower(const CutOptions& options, Random& random) {
  LABRACK_CHECK(powered_);
  Advance(Now());
  powered_ = false;
  image_.Cut(options, random);
  LosePower();
  power_->Cancel();  // ends all sleeps
}

Task<void> ModelDisk::PowerOn() {
  LABRACK_CHECK(!powered_);
  co_await all_over_.Wait();
  power_ = std::make_unique<runtime::CancelToken>();
  powered_ = true;
}

Task<bool> ModelDisk::SleepUntil(TimePoint until) {
  co_await reactor_.SleepUntil(until, power_.get());
  co_return powered_;
}

Result<void> ModelDisk::Answer(Served served) const {
  switch (served) {
    case Served::kYes:
      return {};
    case Served::kNoPower:
      return std::unexpected(NoPower());
    case Served::kCancelled:
      return Fail(Errc::kCancelled, "modelled disk", "");
  }
  LABRACK_CHECK(false);
}

Error ModelDisk::NoPower() const {
  return Error(Errc::kIo, "modelled disk", "has no power, or lost it during the command");
}

}  // namespace labrack::block
