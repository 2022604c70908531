// SimReactor: virtual time. When nothing is ready the clock jumps to the next timer, so hours of
// modelled disks take seconds. Of all that is ready, the seed draws who goes on; so one seed is one
// execution, and many seeds are many orders.
//
// `trace_hash()` runs over every resumption and every Record (time, what, value): two runs of one
// seed must give the same, or something reads the world outside.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "storage/base/random.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

class SimReactor final : public Reactor {
 public:
  explicit SimReactor(Seed seed) : random_(seed) {}

  TimePoint Now() const override { return now_; }
  void Post(std::function<void()> task) override { mail_.push_back(std::move(task)); }
  void Submit(FileOp& operation) override;
  void Record(std::uint64_t what, std::uint64_t value) override;

  std::uint64_t trace_hash() const { return trace_hash_; }
  std::uint64_t resumption_count() const { return resumption_count_; }

 protected:
  void PushReady(Waiter& waiter) override { ready_.push_back(&waiter); }
  Waiter* PopReady() override;
  bool Poll(bool wait, std::optional<TimePoint> until) override;

 private:
  void Mix(std::uint64_t word) { trace_hash_ = Mix64(trace_hash_ ^ word); }

  Random random_;
  TimePoint now_{};
  std::vector<Waiter*> ready_;
  std::vector<std::function<void()>> mail_;
  std::uint64_t trace_hash_ = 0;
  std::uint64_t resumption_count_ = 0;
};

}  // namespace labrack::runtime
