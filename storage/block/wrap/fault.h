// FaultDevice: a device on which a plan of faults comes true (fault_plan.h says what each kind
// does). What the device below holds stays pristine as far as a fault only concerns reads: damage
// is laid over what is read, so that it ends when a block is rewritten or faults are switched off.
//
//   Read, Write, Flush --> gone? hang? slow? --> this I/O's own fault? --> device below
//                                                damage of its blocks?
//
// Which I/O a fault hits depends on virtual time and on the order of I/Os only.
// Lives on one reactor; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/block/wrap/fault_plan.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/sync.h"

namespace labrack::block {

class FaultDevice final : public BlockDevice {
 public:
  // Errors: kInvalidArgument, when the plan is not one for this device. Reactor and device outlive
  // this; `name` is the subject of errors.
  static Result<std::unique_ptr<FaultDevice>> Create(runtime::Reactor& reactor, BlockDevice& device,
                                                     const FaultPlan& plan, std::string name);

  Geometry geometry() const override { return geometry_; }
  Task<Result<void>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Flush(IoContext io) override;

  // As the device that was opened anew: a flush that failed is forgotten.
  void Reopen() { flush_error_.reset(); }
  // Off: nothing goes wrong any more, and damage that is laid over what is read is gone. What wrong
  // writes have done to the device below stays done.
  void SwitchOff() { on_ = false; }

  // I/Os and flushes that a fault has changed or failed; reads, for what is laid over them.
  std::uint64_t hit_count(FaultKind kind) const {
    return hit_counts_[static_cast<std::size_t>(kind)];
  }

 private:
  using BlockContents = std::map<std::uint64_t, std::vector<std::byte>>;  // by number
  struct Planned {
    Fault fault;
    std::uint32_t hits_left = 0;
    bool begun = false;  // its blocks are in latent_ or rotten_
    BlockContents undo;  // kGone: what the disk held when the last `time` before `from` began
  };
  struct Stale {
    std::vector<std::byte> content;
    std::uint32_t reads_left = 0;
  };
  struct Range {
    Offset at;
    Bytes length;
    Offset end() const { return at + length; }
  };

  FaultDevice(runtime::Reactor& reactor, BlockDevice& device, const FaultPlan& plan,
              std::string name);

  static Range Overlap(Range a, Range b);
  bool Holds(const Planned& planned) const;
  Planned* Active(FaultKind kind);
  Planned* Hitting(FaultKind kind, Range range);
  void CountHit(FaultKind kind) { ++hit_counts_[static_cast<std::size_t>(kind)]; }
  void Begin();
  std::optional<Error> Gone();
  std::optional<Error> FlushError();
  template <typename Use>
  void ForEachBlock(Range range, const Use& use) const;

  Task<Result<void>> Reach(IoContext io);
  Task<Result<void>> Restore(IoContext io);
  Task<Result<void>> KeepForUndo(IoContext io, Range range);
  Task<Result<void>> Put(IoContext io, Offset at, ConstView from);
  Task<Result<void>> PutRight(IoContext io, Offset at, ConstView from);
  Task<Result<void>> PutWrong(IoContext io, Offset at, ConstView from, Planned* planned);
  Task<Result<void>> PutTorn(IoContext io, Offset at, ConstView from, Seed seed);
  Task<Result<void>> ReadElsewhere(IoContext io, Range range, MutableView into);
  void Overlay(Range range, MutableView into);

  runtime::Reactor& reactor_;
  BlockDevice& device_;
  Geometry geometry_;
  std::string name_;
  std::vector<Planned> planned_;
  bool on_ = true;
  std::map<std::uint64_t, const Planned*> latent_;  // by block number
  std::map<std::uint64_t, const Planned*> rotten_;
  std::map<std::uint64_t, Stale> stale_;
  std::optional<Error> flush_error_;
  runtime::Mutex restoring_;
  std::array<std::uint64_t, kFaultKindCount> hit_counts_ = {};
};

}  // namespace labrack::block
