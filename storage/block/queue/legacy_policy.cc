// The queue of ZFS from 2005 to 2013, as old listings of its variables and the illumos sources of
// that time describe it: one tree by deadline, one limit for the device.
//
//   deadline = arrival / tick + ticks of the class;   equal deadlines go by offset
//
//   at the device  2 ......... 35
//                  ^           ^ up to here each I/O that ends starts two others
//                  up to here an I/O that arrives starts at once
//
// So a burst of writes behind the deadline of reads stands before them in the device, which is what
// the classes put an end to.
#include "storage/base/check.h"
#include "storage/block/queue/policy.h"

namespace labrack::block {
namespace {

class LegacyPolicy final : public QueuePolicy {
 public:
  explicit LegacyPolicy(const LegacyOptions& options) : options_(options) {}

  bool StartsAtOnce(PriorityClass) const override { return pending_ < options_.pending_min; }

  void Add(Request& request) override {
    const auto tick =
        static_cast<std::uint64_t>(request.arrived.time_since_epoch() / options_.tick);
    request.rank = {.major = tick + options_.deadline_ticks[request.class_index()],
                    .minor = request.at.value(),
                    .order = request.order};
    waiting_.insert(waiting_.end(), request);  // a hint, right for who comes last
  }
  void Remove(Request& request) override { waiting_.erase(waiting_.iterator_to(request)); }

  Request* Next(Occasion occasion, std::uint32_t started) override {
    const bool may = occasion == Occasion::kArrival
                         ? pending_ < options_.pending_min
                         : pending_ < options_.pending_max && started < options_.ramp_rate;
    return may && !waiting_.empty() ? &*waiting_.begin() : nullptr;
  }

  void Began(PriorityClass, Offset) override { ++pending_; }
  void Ended(PriorityClass) override {
    LABRACK_CHECK(pending_ > 0);
    --pending_;
  }
  void SetDirtyFraction(double) override {}

 private:
  LegacyOptions options_;
  RequestsByRank waiting_;
  std::uint32_t pending_ = 0;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeLegacyPolicy(const LegacyOptions& options) {
  return std::make_unique<LegacyPolicy>(options);
}

}  // namespace labrack::block
