// The engine runs one step: a number of clients, each a coroutine that does one operation after the
// other, all begun at one instant.
//
//        start              start + warm-up                  stop rule reached
//   -------|------------------|-------------------------------|-----------------|---->
//   open,  |  warm up         |  measure                      |  drain          |
//   wait   |  (not counted)   |  (counted)                    |  (what is still under way)
//
// Counted is every operation that was under way in measure: begun in it, however long it takes, or
// completed in it. So a slow operation hides neither behind the end nor behind the beginning. The
// measured window is measure itself, and what completed inside of it makes the rate; what completed
// later ("late") is in the latencies and in an interval of its own behind the window. Were the
// window to last until the last operation is done, the clients that have ended would idle in it,
// and one slow operation would be the throughput of all. A stop rule by operations counts exactly
// those that it let begin; the window ends with the last of them.
//
// Open loop (rate > 0): operations have intended starts at equal distances; a client takes the next
// one, waits for it and does it. When all clients are late, the *response* time, counted from the
// intended start, shows it; *service* time, from the real start, does not ("coordinated omission").
// What was due before the end is done in the drain, for as long again as the measurement (1 s to
// 30 s). What could not begin by then is recorded with the time it had waited, and named (LW106).
//
// Hot path: two clock reads, one bucket increment, no lock, no shared cache line but for the budget
// of a stop rule by operations. The clock is Env's, so that all of this runs in virtual time too.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/workload/data_feed.h"
#include "agent/workload/recorder.h"
#include "agent/workload/workload.h"

namespace labrack::workload {

// Threads, histograms and buffers of a step are per client, so there is a limit.
constexpr std::uint32_t kClientsMax = 4096;

// Where the bytes of an operation go.
enum class Moves { kNothing, kReads, kWrites, kCopies };

struct OperationKind {
  std::string name;     // "read", "fsync"
  bool counted = true;  // makes the primary metric; the others stand beside it
  Moves moves = Moves::kNothing;
};

struct StepPlan {
  std::string step = {};
  v1::PrimaryMetric primary = v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND;
  std::vector<OperationKind> kinds = {};
  std::uint32_t clients = 1;

  Nanoseconds warm_up{0};
  std::optional<Nanoseconds> duration = {};      // of measure
  std::optional<std::uint64_t> operations = {};  // of all clients together, counted ones
  Nanoseconds think{0};                          // after each operation
  double rate = 0;  // operations per second of all clients; 0: closed loop

  // For the live view: how much there is to do, where that is known.
  std::uint64_t expected_operations = 0;
  Seed seed = {};  // of the clients' choices
};

class Engine;

// One client of a step. Used by its own coroutine only. Begin, Part and End are the hot path.
class Client {
 public:
  Client(Engine& engine, std::uint32_t index, Seed seed, std::size_t kind_count, bool open_loop);

  std::uint32_t index() const { return index_; }
  Random& random() { return random_; }

  // Whether Pace has anything to do; asked first, since it costs a coroutine.
  bool paced() const { return paced_; }
  // Waits for the intended start of the next operation, or out the think time. False: the end.
  runtime::Task<bool> Pace();

  // Waits a moment, for a client that finds nothing to do just now. False: the end.
  runtime::Task<bool> Rest();

  // For Made, below.
  TimePoint Now() const;
  // The client waited for data to write from `from` until now: the stack was idle for its sake,
  // which the result must not hide (LW107). Within an operation it is taken out of its latencies.
  // A client that waits for its schedule or out of thought anyway waits for no data. Gives the part
  // of that time which lies in the measured time.
  Nanoseconds Made(TimePoint from);

  // Reads the clock and begins an operation. False: the step is at its end, or being stopped.
  bool Begin();
  // A part of the operation under way is done: counts as an operation of its own kind, from the
  // last Part or Begin.
  void Part(std::size_t kind, Bytes bytes);
  // The operation is done, now, or (EndAtPart) when its last part was.
  void End(std::size_t kind, Bytes bytes);
  void EndAtPart(std::size_t kind, Bytes bytes);

  // Ends the client with an error that fails the step: `co_return client.Failed(kRead, "page 7",
  // error)`.
  std::unexpected<Error> Failed(std::size_t kind, const std::string& where, const Error& error);

 private:
  friend class Engine;
  bool Counts(TimePoint to) const;
  void Record(std::size_t kind, TimePoint from, TimePoint to, Bytes bytes);
  void HandOver();
  void NextRow(TimePoint now);

  Engine& engine_;
  const std::uint32_t index_;
  const bool paced_;
  const bool open_loop_;
  bool begun_in_measure_ = false;  // the operation under way was
  TimePoint begin_;                // of the operation under way
  TimePoint mark_;                 // its last part's end
  TimePoint intended_;             // open loop
  TimePoint row_end_;
  TimePoint last_end_;  // of what was counted
  Random random_;
  std::vector<Tally> tallies_;         // by kind
  std::vector<Histogram> response_;    // by kind; open loop only
  std::vector<std::uint64_t> errors_;  // by kind
  std::uint64_t begun_ = 0;            // all, counted or not
  Nanoseconds waiting_{0};             // for data, in the measured time
  std::string first_error_;
  std::size_t first_error_kind_ = 0;

  // Written by this client alone, read by the coordinator.
  alignas(64) std::atomic<std::uint64_t> operations_done_ = 0;
  std::atomic<std::uint64_t> bytes_done_ = 0;
};

class Engine {
 public:
  // What a client does from the step's start to its end. Memory and files are ready before Run.
  using Body = std::function<runtime::Task<Result<void>>(Client& client)>;

  Engine(runtime::Env& env, runtime::Launcher& launcher) : env_(env), launcher_(launcher) {}

  // Runs one step; an Engine is used once. `feeds`: of the clients, by index; empty where they
  // write nothing. Errors in the outcome: what the first client to fail said; kCancelled; kTimedOut
  // where nothing was counted; kExhausted where the host has no room for the clients' threads;
  // kInternal when sums do not add up.
  StepOutcome Run(const StepPlan& plan, const StepContext& context, const Body& body,
                  std::span<const std::unique_ptr<DataFeed>> feeds = {});

 private:
  friend class Client;

  runtime::Task<void> RunClient(Client* client, const Body* body);
  runtime::Task<void> Coordinate();
  void EnterDuePhases(TimePoint now);
  void Publish(TimePoint now);
  void PublishSecond();
  void ClientDone(TimePoint at);
  void SetTimes();
  bool TakeFromBudget();
  bool BudgetSpent() const { return plan_->operations && budget_taken_ >= *plan_->operations; }

  StepOutcome Collect();
  v1::OperationResult CollectKind(std::size_t kind) const;
  Result<void> CheckSums(const v1::StepResult& result) const;
  Result<void> Status(std::uint64_t counted) const;
  TimePoint MeasureEnd() const;
  TimePoint LastEnd() const;
  std::uint64_t CountedInWindow(const v1::StepResult& result) const;
  TimePoint IntendedStart(std::uint64_t number) const;
  void RecordNotBegun();
  BytesMoved Moved(const v1::StepResult& result) const;
  double WaitingShare(const v1::StepResult& result) const;
  void AddRates(std::uint64_t counted, v1::StepResult& result) const;

  runtime::Env& env_;
  runtime::Launcher& launcher_;
  const StepPlan* plan_ = nullptr;
  const StepContext* context_ = nullptr;
  std::span<const std::unique_ptr<DataFeed>> feeds_;

  // Fixed before clients run.
  TimePoint start_;
  TimePoint measure_begin_;
  TimePoint deadline_ = TimePoint::max();
  TimePoint backlog_end_ = TimePoint::max();  // open loop: nothing begins after it
  std::deque<Client> clients_;                // clients do not move
  std::unique_ptr<Intervals> intervals_;

  runtime::CancelToken stop_;  // cancelled, or a client failed
  runtime::CancelToken done_;  // no client runs any more
  std::atomic<std::uint64_t> budget_taken_ = 0;
  std::atomic<std::uint64_t> schedule_next_ = 0;
  std::atomic<std::uint32_t> running_ = 0;

  std::mutex mutex_;  // guards the next four
  TimePoint first_wake_ = TimePoint::max();
  TimePoint last_done_;  // so far
  std::optional<Error> failure_;
  bool cancelled_ = false;

  std::uint64_t not_begun_ = 0;  // open loop: due before the end, but no client was free
  std::vector<Histogram> not_begun_response_;  // by kind

  // The coordinator's own.
  bool entered_warm_up_ = false;
  bool entered_measure_ = false;
  bool entered_drain_ = false;
  TimePoint last_second_;
  std::vector<Sums> live_;  // by kind, as of the newest second
};

inline TimePoint Client::Now() const { return engine_.env_.Now(); }

inline Nanoseconds Client::Made(TimePoint from) {
  const TimePoint now = Now();
  const Nanoseconds counted =
      std::max(Nanoseconds(0), now - std::max(from, engine_.measure_begin_));
  if (paced_) return counted;
  waiting_ += counted;
  begin_ += now - from;
  mark_ += now - from;
  return counted;
}

inline bool Client::Begin() {
  begin_ = engine_.env_.Now();
  mark_ = begin_;
  const bool over = open_loop_ ? intended_ >= engine_.deadline_ || begin_ >= engine_.backlog_end_
                               : begin_ >= engine_.deadline_;
  if (over || engine_.stop_.cancelled()) return false;
  begun_in_measure_ = begin_ >= engine_.measure_begin_;
  if (begun_in_measure_ && !engine_.TakeFromBudget()) return false;
  ++begun_;
  return true;
}

inline bool Client::Counts(TimePoint to) const {
  return begun_in_measure_ || (to > engine_.measure_begin_ && !engine_.plan_->operations);
}

inline bool Engine::TakeFromBudget() {
  return !plan_->operations ||
         budget_taken_.fetch_add(1, std::memory_order_relaxed) < *plan_->operations;
}

inline void Client::Record(std::size_t kind, TimePoint from, TimePoint to, Bytes bytes) {
  if (!Counts(to)) return;
  if (to > row_end_) NextRow(to);
  tallies_[kind].Record(to - from, bytes.count());
  last_end_ = to;
  if (!engine_.plan_->kinds[kind].counted) return;
  operations_done_.store(operations_done_.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  bytes_done_.store(bytes_done_.load(std::memory_order_relaxed) + bytes.count(),
                    std::memory_order_relaxed);
}

inline void Client::Part(std::size_t kind, Bytes bytes) {
  const TimePoint now = engine_.env_.Now();
  Record(kind, mark_, now, bytes);
  mark_ = now;
}

inline void Client::End(std::size_t kind, Bytes bytes) {
  mark_ = engine_.env_.Now();
  EndAtPart(kind, bytes);
}

inline void Client::EndAtPart(std::size_t kind, Bytes bytes) {
  Record(kind, begin_, mark_, bytes);
  if (open_loop_ && Counts(mark_)) response_[kind].Record(mark_ - intended_);
}

}  // namespace labrack::workload
