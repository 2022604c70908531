// Five priority classes, each with a minimum and a maximum at the device (the I/O scheduler that
// OpenZFS describes in vdev_queue.c). Whom to start:
//
//   1. a class below its minimum, in turn: so none starves, whatever the others do
//   2. else the first class below its maximum, in the order of PriorityClass
//
//   async writes:  max |            ______     scrub:  others are under way: at most its minimum,
//                      |           /                   and `credit` starts for each that ends;
//                  min |__________/                    alone for `credit` I/Os: its maximum
//                      0      low  high  1 dirty
//
// Within a class: the synchronous ones first come, first served; the others by offset onwards from
// where the last I/O ended, but what arrived in an earlier bucket of time goes first.
#include <algorithm>

#include "storage/base/check.h"
#include "storage/block/queue/policy.h"

namespace labrack::block {
namespace {

constexpr auto kScrub = static_cast<std::size_t>(PriorityClass::kScrub);
constexpr auto kAsyncWrite = static_cast<std::size_t>(PriorityClass::kAsyncWrite);

bool FirstComeFirstServed(std::size_t index) {
  const auto priority = static_cast<PriorityClass>(index);
  return priority == PriorityClass::kSyncRead || priority == PriorityClass::kSyncWrite;
}

class ClassesPolicy final : public QueuePolicy {
 public:
  explicit ClassesPolicy(const ClassesOptions& options) : options_(options) { SetDirtyFraction(0); }

  bool StartsAtOnce(PriorityClass priority) const override {
    const auto index = static_cast<std::size_t>(priority);
    return active_all_ < options_.active_max && active_[index] < ActiveMax(index);
  }

  void Add(Request& request) override {
    const std::size_t index = request.class_index();
    request.rank = {.order = request.order};
    if (!FirstComeFirstServed(index)) {
      request.rank.major =
          static_cast<std::uint64_t>(request.arrived.time_since_epoch() / options_.bucket);
      request.rank.minor = request.at.value();
    }
    waiting_[index].insert(waiting_[index].end(), request);  // a hint, right for who comes last
  }
  void Remove(Request& request) override {
    RequestsByRank& waiting = waiting_[request.class_index()];
    waiting.erase(waiting.iterator_to(request));
  }

  Request* Next(Occasion, std::uint32_t) override {
    if (active_all_ >= options_.active_max) return nullptr;
    for (std::size_t step = 1; step <= kPriorityClassCount; ++step) {
      const std::size_t index = (last_class_ + step) % kPriorityClassCount;
      if (!waiting_[index].empty() && active_[index] < ActiveMin(index)) return &Pick(index);
    }
    for (std::size_t index = 0; index < kPriorityClassCount; ++index) {
      if (!waiting_[index].empty() && active_[index] < ActiveMax(index)) return &Pick(index);
    }
    return nullptr;
  }

  void Began(PriorityClass priority, Offset end) override {
    const auto index = static_cast<std::size_t>(priority);
    ++active_all_;
    ++active_[index];
    last_end_ = end;
    if (index != kScrub) {
      if (foreground() == 1) credit_ = 1;
    } else if (foreground() > 0) {
      LABRACK_CHECK(credit_ > 0);
      --credit_;
    }
  }
  void Ended(PriorityClass priority) override {
    const auto index = static_cast<std::size_t>(priority);
    LABRACK_CHECK(active_[index] > 0);
    --active_all_;
    --active_[index];
    if (index != kScrub) {
      credit_ = foreground() == 0 ? 0 : options_.background_credit;
    } else if (foreground() == 0) {
      credit_ = std::min(credit_ + 1, options_.background_credit);
    }
  }

  void SetDirtyFraction(double fraction) override {
    const ClassLimits& limits = options_.limits[kAsyncWrite];
    const double full = std::clamp(
        (fraction - options_.dirty_low) / (options_.dirty_high - options_.dirty_low), 0.0, 1.0);
    async_write_max_ = limits.active_min +
                       static_cast<std::uint32_t>(full * (limits.active_max - limits.active_min));
  }

 private:
  std::uint32_t foreground() const { return active_all_ - active_[kScrub]; }

  std::uint32_t ActiveMin(std::size_t index) const {
    const std::uint32_t least = options_.limits[index].active_min;
    return index == kScrub && foreground() > 0 ? std::min(credit_, least) : least;
  }
  std::uint32_t ActiveMax(std::size_t index) const {
    if (index == kAsyncWrite) return async_write_max_;
    if (index != kScrub) return options_.limits[index].active_max;
    const bool alone = foreground() == 0 && credit_ >= options_.background_credit;
    return alone ? options_.limits[index].active_max : ActiveMin(index);
  }

  Request& Pick(std::size_t index) {
    last_class_ = index;
    RequestsByRank& waiting = waiting_[index];
    Request& oldest = *waiting.begin();
    if (FirstComeFirstServed(index) || oldest.at >= last_end_) return oldest;
    const Request::Rank onwards = {.major = oldest.rank.major, .minor = last_end_.value()};
    const auto found = waiting.lower_bound(onwards, RankOnly());
    const bool same_bucket = found != waiting.end() && found->rank.major == oldest.rank.major;
    return same_bucket ? *found : oldest;
  }

  struct RankOnly {
    bool operator()(const Request& a, const Request::Rank& b) const { return a.rank < b; }
    bool operator()(const Request::Rank& a, const Request& b) const { return a < b.rank; }
  };

  ClassesOptions options_;
  PerClass<RequestsByRank> waiting_;
  PerClass<std::uint32_t> active_ = {};
  std::uint32_t active_all_ = 0;
  std::uint32_t async_write_max_ = 0;
  std::uint32_t credit_ = 0;  // scrub I/Os that may start, or have ended alone
  std::size_t last_class_ = kPriorityClassCount - 1;
  Offset last_end_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeClassesPolicy(const ClassesOptions& options) {
  return std::make_unique<ClassesPolicy>(options);
}

}  // namespace labrack::block
