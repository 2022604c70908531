#include "storage/block/wrap/fault.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

constexpr Bytes kTornUnit{512};  // what a disk writes whole or not at all

// Flips bits of different bytes, so that they cannot flip back.
void Rot(MutableView block, Seed seed, std::uint64_t number) {
  Random random(Derive(seed, number));
  const std::size_t flips = 1 + random.Below(4);
  const std::size_t stretch = block.size() / flips;
  for (std::size_t i = 0; i < flips; ++i) {
    block[i * stretch + random.Below(stretch)] ^= std::byte{1} << random.Below(8);
  }
}

}  // namespace

Result<std::unique_ptr<FaultDevice>> FaultDevice::Create(runtime::Reactor& reactor,
                                                         BlockDevice& device, const FaultPlan& plan,
                                                         std::string name) {
  if (Result<void> valid = plan.Validate(device.geometry()); !valid) {
    return std::unexpected(valid.error());
  }
  return std::unique_ptr<FaultDevice>(new FaultDevice(reactor, device, plan, std::move(name)));
}

FaultDevice::FaultDevice(runtime::Reactor& reactor, BlockDevice& device, const FaultPlan& plan,
                         std::string name)
    : reactor_(reactor),
      device_(device),
      geometry_(device.geometry()),
      name_(std::move(name)),
      restoring_(reactor) {
  for (const Fault& fault : plan.faults) {
    planned_.push_back({.fault = fault, .hits_left = fault.hits_max, .undo = {}});
  }
}

// --- which fault, when ---

bool FaultDevice::Holds(const Planned& planned) const {
  const TimePoint now = reactor_.Now();
  return on_ && planned.fault.from <= now && now < planned.fault.until;
}

FaultDevice::Planned* FaultDevice::Active(FaultKind kind) {
  for (Planned& planned : planned_) {
    if (planned.fault.kind == kind && Holds(planned)) return &planned;
  }
  return nullptr;
}

FaultDevice::Range FaultDevice::Overlap(Range a, Range b) {
  const Offset begin = std::max(a.at, b.at);
  const Offset end = std::min(a.end(), b.end());
  return {begin, begin < end ? end - begin : Bytes(0)};
}

FaultDevice::Planned* FaultDevice::Hitting(FaultKind kind, Range range) {
  for (Planned& planned : planned_) {
    const Fault& fault = planned.fault;
    if (fault.kind != kind || planned.hits_left == 0 || !Holds(planned)) continue;
    const Range part = Overlap(range, {fault.at, fault.length});
    const Bytes least = kind == FaultKind::kTornWrite ? 2 * kTornUnit : geometry_.block_size;
    if (part.length >= least) return &planned;
  }
  return nullptr;
}

template <typename Use>
void FaultDevice::ForEachBlock(Range range, const Use& use) const {
  const std::uint64_t first = range.at.value() / geometry_.block_size.count();
  for (std::uint64_t i = 0; i < range.length / geometry_.block_size; ++i) use(first + i, i);
}

// Damage of blocks begins with the first I/O from its instant on.
void FaultDevice::Begin() {
  for (Planned& planned : planned_) {
    const Fault& fault = planned.fault;
    if (planned.begun || !Holds(planned)) continue;
    planned.begun = true;
    if (fault.kind != FaultKind::kLatentError && fault.kind != FaultKind::kBitRot) continue;
    auto& damaged = fault.kind == FaultKind::kLatentError ? latent_ : rotten_;
    ForEachBlock({fault.at, fault.length},
                 [&](std::uint64_t number, std::uint64_t) { damaged[number] = &planned; });
  }
}

std::optional<Error> FaultDevice::Gone() {
  if (Active(FaultKind::kGone) == nullptr) return std::nullopt;
  CountHit(FaultKind::kGone);
  return Error(Errc::kUnavailable, name_, "the disk is gone");
}

std::optional<Error> FaultDevice::FlushError() {
  if (!flush_error_ && Active(FaultKind::kFailingFlush) != nullptr) {
    CountHit(FaultKind::kFailingFlush);
    flush_error_ = Error(Errc::kIo, name_, "a flush failed; what it should have covered is lost");
  }
  return flush_error_;
}

// --- what every I/O meets ---

Task<Result<void>> FaultDevice::Reach(IoContext io) {
  Begin();
  if (std::optional<Error> gone = Gone()) co_return std::unexpected(*std::move(gone));
  Result<void> restored = co_await Restore(io);
  if (!restored) co_return restored;
  const bool hangs = Active(FaultKind::kHang) != nullptr;
  Planned* late = Active(hangs ? FaultKind::kHang : FaultKind::kSlow);
  if (late == nullptr) co_return Result<void>();
  CountHit(late->fault.kind);
  const TimePoint until = reactor_.Now() + late->fault.time;
  Result<void> slept = co_await reactor_.SleepUntil(until, io.cancel);
  if (!slept) co_return slept;
  if (hangs) co_return Fail(Errc::kTimedOut, name_, "the disk does not answer");
  if (std::optional<Error> gone = Gone()) co_return std::unexpected(*std::move(gone));
  co_return Result<void>();
}

// A disk that was gone is back with the content of before: what was written since is undone.
Task<Result<void>> FaultDevice::Restore(IoContext io) {
  for (Planned& planned : planned_) {
    if (planned.undo.empty() || reactor_.Now() < planned.fault.until) continue;
    co_await restoring_.Lock();
    runtime::Mutex::Held held(restoring_);
    while (on_ && !planned.undo.empty()) {
      const auto oldest = planned.undo.begin();
      const Offset at(oldest->first * geometry_.block_size.count());
      Result<void> written = co_await device_.Write(io.Behind(io.priority), at, oldest->second);
      if (!written) co_return written;
      planned.undo.erase(oldest);
    }
    planned.undo.clear();
  }
  co_return Result<void>();
}

Task<Result<void>> FaultDevice::KeepForUndo(IoContext io, Range range) {
  for (Planned& planned : planned_) {
    const Fault& fault = planned.fault;
    const TimePoint now = reactor_.Now();
    const bool keeps =
        fault.kind == FaultKind::kGone && now < fault.from && fault.from - now <= fault.time;
    if (!on_ || !keeps) continue;
    std::vector<std::byte> old(range.length.size());
    Result<void> read = co_await device_.Read(io.Behind(io.priority), range.at, old);
    if (!read) co_return read;
    const std::size_t size = geometry_.block_size.size();
    ForEachBlock(range, [&](std::uint64_t number, std::uint64_t i) {
      const auto block = old.begin() + static_cast<std::ptrdiff_t>(i * size);
      planned.undo.try_emplace(number, block, block + static_cast<std::ptrdiff_t>(size));
    });
  }
  co_return Result<void>();
}

// --- reads ---

Task<Result<void>> FaultDevice::Read(IoContext io, Offset at, MutableView into) {
  const Range range{at, Bytes(into.size())};
  Result<void> done = co_await Reach(io);
  if (!done) co_return done;
  std::optional<std::uint64_t> unreadable;
  ForEachBlock(range, [&](std::uint64_t number, std::uint64_t) {
    const auto found = latent_.find(number);
    if (!unreadable && found != latent_.end() && Holds(*found->second)) unreadable = number;
  });
  if (unreadable) {
    CountHit(FaultKind::kLatentError);
    co_return Fail(Errc::kIo, name_, "block " + std::to_string(*unreadable) + " is unreadable");
  }
  done = co_await device_.Read(io, at, into);
  if (!done) co_return done;
  Overlay(range, into);
  done = co_await ReadElsewhere(io, range, into);
  if (std::optional<Error> gone = Gone()) co_return std::unexpected(*std::move(gone));
  co_return done;
}

Task<Result<void>> FaultDevice::ReadElsewhere(IoContext io, Range range, MutableView into) {
  Planned* planned = Hitting(FaultKind::kMisdirectedRead, range);
  if (planned == nullptr) co_return Result<void>();
  --planned->hits_left;
  CountHit(FaultKind::kMisdirectedRead);
  const Fault& fault = planned->fault;
  const Range part = Overlap(range, {fault.at, fault.length});
  const Offset from = fault.elsewhere + (part.at - fault.at);
  const MutableView place = into.subspan((part.at - range.at).size(), part.length.size());
  Result<void> done = co_await device_.Read(io, from, place);
  co_return done;
}

void FaultDevice::Overlay(Range range, MutableView into) {
  if (!on_) return;
  const std::size_t size = geometry_.block_size.size();
  bool stale_hit = false;
  bool rot_hit = false;
  ForEachBlock(range, [&](std::uint64_t number, std::uint64_t i) {
    const MutableView block = into.subspan(i * size, size);
    const auto stale = stale_.find(number);
    if (stale != stale_.end()) {
      stale_hit = true;
      std::ranges::copy(stale->second.content, block.begin());
      if (--stale->second.reads_left == 0) stale_.erase(stale);
    }
    const auto rotten = rotten_.find(number);
    if (rotten != rotten_.end() && Holds(*rotten->second)) {
      rot_hit = true;
      Rot(block, rotten->second->fault.seed, number);
    }
  });
  if (stale_hit) CountHit(FaultKind::kStaleRead);
  if (rot_hit) CountHit(FaultKind::kBitRot);
}

// --- writes ---

Task<Result<void>> FaultDevice::Write(IoContext io, Offset at, ConstView from) {
  const Range range{at, Bytes(from.size())};
  Result<void> done = co_await Reach(io);
  if (!done) co_return done;
  if (Active(FaultKind::kFull) != nullptr) {
    CountHit(FaultKind::kFull);
    co_return Fail(Errc::kNoSpace, name_, "the disk is full");
  }
  if (io.durable) {
    if (std::optional<Error> failed = FlushError()) co_return std::unexpected(*std::move(failed));
    if (Active(FaultKind::kLyingFlush) != nullptr) {
      CountHit(FaultKind::kLyingFlush);
      io.durable = false;
    }
  }
  done = co_await KeepForUndo(io, range);
  if (!done) co_return done;
  Planned* wrong = nullptr;
  for (const FaultKind kind :
       {FaultKind::kLostWrite, FaultKind::kTornWrite, FaultKind::kMisdirectedWrite}) {
    if (wrong == nullptr) wrong = Hitting(kind, range);
  }
  if (wrong != nullptr) {
    done = co_await PutWrong(io, at, from, wrong);
  } else {
    done = co_await PutRight(io, at, from);
  }
  if (std::optional<Error> gone = Gone()) co_return std::unexpected(*std::move(gone));
  co_return done;
}

// What is rewritten is whole again.
Task<Result<void>> FaultDevice::Put(IoContext io, Offset at, ConstView from) {
  if (from.empty()) co_return Result<void>();
  Result<void> done = co_await device_.Write(io, at, from);
  if (!done) co_return done;
  ForEachBlock({at, Bytes(from.size())}, [&](std::uint64_t number, std::uint64_t) {
    latent_.erase(number);
    rotten_.erase(number);
    stale_.erase(number);
  });
  co_return done;
}

// Or nearly: later reads may still find what was there before.
Task<Result<void>> FaultDevice::PutRight(IoContext io, Offset at, ConstView from) {
  const Range range{at, Bytes(from.size())};
  Planned* planned = Hitting(FaultKind::kStaleRead, range);
  if (planned == nullptr) {
    Result<void> done = co_await Put(io, at, from);
    co_return done;
  }
  const std::uint32_t reads = std::exchange(planned->hits_left, 0);
  const Range part = Overlap(range, {planned->fault.at, planned->fault.length});
  std::vector<std::byte> old(part.length.size());
  Result<void> done = co_await device_.Read(io.Behind(io.priority), part.at, old);
  if (!done) co_return done;
  done = co_await Put(io, at, from);
  if (!done) co_return done;
  const std::size_t size = geometry_.block_size.size();
  ForEachBlock(part, [&](std::uint64_t number, std::uint64_t i) {
    const auto block = old.begin() + static_cast<std::ptrdiff_t>(i * size);
    stale_[number] = {{block, block + static_cast<std::ptrdiff_t>(size)}, reads};
  });
  co_return done;
}

// The part within the fault's blocks goes wrong, what lies before and after it does not.
Task<Result<void>> FaultDevice::PutWrong(IoContext io, Offset at, ConstView from,
                                         Planned* planned) {
  const Fault& fault = planned->fault;
  --planned->hits_left;
  CountHit(fault.kind);
  const Range part = Overlap({at, Bytes(from.size())}, {fault.at, fault.length});
  const std::size_t begin = (part.at - at).size();
  const ConstView bytes = from.subspan(begin, part.length.size());
  Result<void> done = co_await Put(io, at, from.first(begin));
  if (!done) co_return done;
  done = co_await Put(io, part.end(), from.subspan(begin + bytes.size()));
  if (!done) co_return done;
  if (fault.kind == FaultKind::kMisdirectedWrite) {
    done = co_await Put(io, fault.elsewhere + (part.at - fault.at), bytes);
  } else if (fault.kind == FaultKind::kTornWrite) {
    done = co_await PutTorn(io, part.at, bytes, Derive(fault.seed, planned->hits_left));
  }
  co_return done;
}

Task<Result<void>> FaultDevice::PutTorn(IoContext io, Offset at, ConstView from, Seed seed) {
  Random random(seed);
  const std::uint64_t units = Bytes(from.size()) / kTornUnit;
  const Bytes arrives = (1 + random.Below(units - 1)) * kTornUnit;
  const Bytes rest = arrives % geometry_.block_size;
  const Bytes whole = arrives - rest;
  Result<void> done = co_await Put(io, at, from.first(whole.size()));
  if (!done || rest == Bytes(0)) co_return done;
  std::vector<std::byte> block(geometry_.block_size.size());
  done = co_await device_.Read(io.Behind(io.priority), at + whole, block);
  if (!done) co_return done;
  std::ranges::copy(from.subspan(whole.size(), rest.size()), block.begin());
  done = co_await Put(io, at + whole, block);
  co_return done;
}

// --- flushes ---

Task<Result<void>> FaultDevice::Flush(IoContext io) {
  Result<void> done = co_await Reach(io);
  if (!done) co_return done;
  if (std::optional<Error> failed = FlushError()) co_return std::unexpected(*std::move(failed));
  if (Active(FaultKind::kLyingFlush) != nullptr) {
    CountHit(FaultKind::kLyingFlush);
    co_return Result<void>();
  }
  done = co_await device_.Flush(io);
  if (std::optional<Error> gone = Gone()) co_return std::unexpected(*std::move(gone));
  co_return done;
}

}  // namespace labrack::block
