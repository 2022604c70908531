#include "agent/workload/engine.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "proto/convert/convert.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// How often the coordinator looks after phases, cancellation and the live view.
constexpr Nanoseconds kCoordinateInterval = std::chrono::milliseconds(50);
constexpr Nanoseconds kRest = std::chrono::microseconds(20);
constexpr Nanoseconds kLiveInterval = std::chrono::seconds(1);
// How long an open loop works off what was due before its end: as long as it measured, within:
constexpr Nanoseconds kBacklogMin = std::chrono::seconds(1);
constexpr Nanoseconds kBacklogMax = std::chrono::seconds(30);
// Without a barrier the start is as early as all threads can have been started by then.
constexpr Nanoseconds kLead = std::chrono::microseconds(200);
constexpr Nanoseconds kLeadPerThread = std::chrono::microseconds(30);

std::int64_t MonoNs(TimePoint at) { return at.time_since_epoch().count(); }

}  // namespace

Client::Client(Engine& engine, std::uint32_t index, Seed seed, std::size_t kind_count,
               bool open_loop)
    : engine_(engine),
      index_(index),
      paced_(open_loop || engine.plan_->think > Nanoseconds(0)),
      open_loop_(open_loop),
      random_(Derive(seed, index)),
      tallies_(kind_count),
      response_(open_loop ? kind_count : 0),
      errors_(kind_count) {}

Task<bool> Client::Pace() {
  TimePoint at = begin_ == TimePoint() ? engine_.start_ : mark_ + engine_.plan_->think;
  if (engine_.BudgetSpent()) co_return false;
  if (open_loop_) {
    const std::uint64_t number = engine_.schedule_next_.fetch_add(1, std::memory_order_relaxed);
    at = engine_.IntendedStart(number);
    intended_ = at;
  }
  if (at >= engine_.deadline_) {
    // Nothing to do until the end; leaving before it would begin the drain too early.
    std::ignore = co_await engine_.env_.SleepUntil(engine_.deadline_, &engine_.stop_);
    co_return false;
  }
  Result<void> waited = co_await engine_.env_.SleepUntil(at, &engine_.stop_);
  co_return waited.has_value();
}

Task<bool> Client::Rest() {
  const TimePoint at = std::min(engine_.env_.Now() + kRest, engine_.deadline_);
  Result<void> waited = co_await engine_.env_.SleepUntil(at, &engine_.stop_);
  co_return waited.has_value() && at < engine_.deadline_ && !engine_.BudgetSpent();
}

void Client::NextRow(TimePoint now) {
  HandOver();
  row_end_ = engine_.intervals_->RowEnd(now);
}

void Client::HandOver() {
  for (std::size_t kind = 0; kind < tallies_.size(); ++kind) {
    if (!tallies_[kind].empty()) engine_.intervals_->Add(row_end_, kind, tallies_[kind].Take());
  }
}

std::unexpected<Error> Client::Failed(std::size_t kind, const std::string& where,
                                      const Error& error) {
  const std::string& operation = engine_.plan_->kinds[kind].name;
  if (errors_[kind]++ == 0) {
    first_error_ = error.ToString();
    first_error_kind_ = kind;
  }
  return std::unexpected(Error(error.code(),
                               fmt::format("{} of {}, client {}", operation, where, index_),
                               error.ToString()));
}

StepOutcome Engine::Run(const StepPlan& plan, const StepContext& context, const Body& body,
                        std::span<const std::unique_ptr<DataFeed>> feeds) {
  LABRACK_CHECK(plan_ == nullptr && plan.clients > 0 && !plan.kinds.empty());
  LABRACK_CHECK(feeds.empty() || feeds.size() == plan.clients);
  plan_ = &plan;
  context_ = &context;
  feeds_ = feeds;
  if (context.progress != nullptr) context.progress->Reset();
  running_ = plan.clients;
  std::vector<Task<void>> tasks;
  tasks.push_back(Coordinate());
  for (std::uint32_t i = 0; i < plan.clients; ++i) {
    Client& client = clients_.emplace_back(*this, i, plan.seed, plan.kinds.size(), plan.rate > 0);
    tasks.push_back(RunClient(&client, &body));
  }
  SetTimes();
  for (const std::unique_ptr<DataFeed>& feed : feeds_) {
    if (feed->ahead()) tasks.push_back(feed->RunMaker(measure_begin_));
  }
  if (Result<void> ran = launcher_.RunAll(std::move(tasks)); !ran) {
    StepOutcome outcome{.status = std::move(ran), .result = {}};
    outcome.result.set_step(plan.step);
    return outcome;
  }
  return Collect();
}

void Engine::SetTimes() {
  // A client may have a maker beside it.
  const auto threads = static_cast<std::int64_t>(plan_->clients + feeds_.size());
  const TimePoint earliest = env_.Now() + kLead + threads * kLeadPerThread;
  start_ = context_->barrier ? context_->start : std::max(context_->start, earliest);
  measure_begin_ = start_ + plan_->warm_up;
  if (plan_->duration) {
    deadline_ = measure_begin_ + *plan_->duration;
    backlog_end_ = deadline_ + std::clamp(*plan_->duration, kBacklogMin, kBacklogMax);
  }
  last_second_ = measure_begin_;
  intervals_ = std::make_unique<Intervals>(measure_begin_, deadline_, plan_->kinds.size());
  for (Client& client : clients_) client.row_end_ = intervals_->RowEnd(measure_begin_);
}

Task<void> Engine::RunClient(Client* client, const Body* body) {
  DataFeed* feed = feeds_.empty() ? nullptr : feeds_[client->index()].get();
  if (feed != nullptr && !feed->ahead()) feed->Prepare();
  Result<void> waited = co_await env_.SleepUntil(start_, &stop_);
  {
    std::lock_guard lock(mutex_);
    first_wake_ = std::min(first_wake_, env_.Now());
  }
  if (waited) {
    Result<void> ran = co_await (*body)(*client);
    client->HandOver();
    if (!ran) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = ran.error();
      stop_.Cancel();
    }
  }
  if (feed != nullptr) feed->Close();
  ClientDone(env_.Now());
}

void Engine::ClientDone(TimePoint at) {
  {
    std::lock_guard lock(mutex_);
    last_done_ = std::max(last_done_, at);
  }
  if (running_.fetch_sub(1) == 1) done_.Cancel();
}

Task<void> Engine::Coordinate() {
  while (!done_.cancelled()) {
    const TimePoint now = env_.Now();
    if (context_->cancel != nullptr && context_->cancel->cancelled() && !stop_.cancelled()) {
      std::lock_guard lock(mutex_);
      cancelled_ = true;
      stop_.Cancel();
    }
    EnterDuePhases(now);
    Publish(now);
    TimePoint next = now + kCoordinateInterval;
    for (TimePoint due : {start_, measure_begin_, deadline_}) {
      if (due > now) next = std::min(next, due);
    }
    Result<void> slept = co_await env_.SleepUntil(next, &done_);
    if (!slept) break;
  }
  EnterDuePhases(env_.Now());
  Publish(env_.Now());
}

void Engine::EnterDuePhases(TimePoint now) {
  if (!context_->enter) return;
  TimePoint drain = deadline_;
  if (running_ == 0) {
    std::lock_guard lock(mutex_);
    drain = std::min(deadline_, last_done_);
  }
  if (!entered_warm_up_ && now >= start_ && plan_->warm_up > Nanoseconds(0)) {
    entered_warm_up_ = true;
    context_->enter(v1::PHASE_WARM_UP, start_);
  }
  if (!entered_measure_ && now >= measure_begin_) {
    entered_measure_ = true;
    context_->enter(v1::PHASE_MEASURE, measure_begin_);
  }
  if (!entered_drain_ && entered_measure_ && now >= drain) {
    entered_drain_ = true;
    context_->enter(v1::PHASE_DRAIN, std::max(drain, measure_begin_));
  }
}

void Engine::Publish(TimePoint now) {
  if (context_->progress == nullptr) return;
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  for (const Client& client : clients_) {
    operations += client.operations_done_.load(std::memory_order_relaxed);
    bytes += client.bytes_done_.load(std::memory_order_relaxed);
  }
  double fraction = 0;
  const std::uint64_t expected = plan_->operations.value_or(plan_->expected_operations);
  if (expected > 0) fraction = static_cast<double>(operations) / static_cast<double>(expected);
  if (plan_->duration && now > start_) {
    const double whole = static_cast<double>((deadline_ - start_).count());
    fraction = std::max(fraction, static_cast<double>((now - start_).count()) / whole);
  }
  context_->progress->Set(operations, bytes, std::min(fraction, 1.0));
  if (now - last_second_ < kLiveInterval) return;
  last_second_ = now;
  PublishSecond();
}

void Engine::PublishSecond() {
  const std::vector<Sums> recent = intervals_->TakeRecent();
  live_.resize(recent.size());
  Sums all;
  std::vector<OperationProgress> kinds;
  for (std::size_t kind = 0; kind < recent.size(); ++kind) {
    all.Add(recent[kind]);
    live_[kind].Add(recent[kind]);
    kinds.push_back({.name = plan_->kinds[kind].name,
                     .count = live_[kind].count,
                     .bytes = live_[kind].bytes,
                     .service = live_[kind].ToHistogram()});
  }
  context_->progress->SetLastSecond(all.ToHistogram(), std::move(kinds));
}

TimePoint Engine::LastEnd() const {
  TimePoint end = measure_begin_;
  for (const Client& client : clients_) end = std::max(end, client.last_end_);
  return end;
}

TimePoint Engine::MeasureEnd() const {
  // Ended by time, the window is that long, also where clients were thinking at its end.
  if (plan_->duration && !BudgetSpent() && !failure_ && !cancelled_) return deadline_;
  return std::min(LastEnd(), deadline_);
}

TimePoint Engine::IntendedStart(std::uint64_t number) const {
  const double since = static_cast<double>(number) * 1e9 / plan_->rate;
  return start_ + Nanoseconds(std::llround(since));
}

// The clients took the schedule in its order, so what never began is its end. Of which kind it
// would have been is not known; each goes to the kind whose share of what began is least served.
void Engine::RecordNotBegun() {
  if (plan_->rate <= 0 || !plan_->duration || BudgetSpent() || failure_ || cancelled_) return;
  std::uint64_t begun = 0;
  std::vector<std::uint64_t> done(plan_->kinds.size());
  for (const Client& client : clients_) {
    begun += client.begun_;
    for (std::size_t kind = 0; kind < done.size(); ++kind) {
      if (plan_->kinds[kind].counted) done[kind] += client.response_[kind].count();
    }
  }
  not_begun_response_.resize(done.size());
  std::vector<std::uint64_t> given(done.size());
  for (std::uint64_t number = begun; IntendedStart(number) < deadline_; ++number) {
    std::size_t kind = 0;
    for (std::size_t other = 1; other < done.size(); ++other) {
      if ((given[other] + 1) * done[kind] < (given[kind] + 1) * done[other]) kind = other;
    }
    ++given[kind];
    ++not_begun_;
    not_begun_response_[kind].Record(backlog_end_ - IntendedStart(number));
  }
}

std::uint64_t Engine::CountedInWindow(const v1::StepResult& result) const {
  std::uint64_t count = 0;
  for (const v1::Interval& row : result.intervals()) {
    if (row.end_mono_ns() > result.measure_end_mono_ns()) continue;
    for (const v1::IntervalOperation& operation : row.operations()) {
      for (const OperationKind& kind : plan_->kinds) {
        if (kind.counted && kind.name == operation.operation()) count += operation.count();
      }
    }
  }
  return count;
}

StepOutcome Engine::Collect() {
  StepOutcome outcome;
  v1::StepResult& result = outcome.result;
  const TimePoint end = MeasureEnd();
  // A client that woke late shows as skew; one that woke during the warm-up does not matter.
  const TimePoint begin = std::min(end, std::max(measure_begin_, first_wake_));
  result.set_step(plan_->step);
  result.set_primary(plan_->primary);
  result.set_measure_begin_mono_ns(MonoNs(begin));
  result.set_measure_end_mono_ns(MonoNs(end));
  if (context_->barrier) result.set_intended_start_mono_ns(MonoNs(context_->start));

  RecordNotBegun();
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < plan_->kinds.size(); ++kind) {
    names.push_back(plan_->kinds[kind].name);
    v1::OperationResult operation = CollectKind(kind);
    if (plan_->kinds[kind].counted) {
      result.add_counted(names.back());
    }
    // What was planned but never done (an fsync that was not asked for) is no result.
    if (operation.count() > 0 || operation.error_count() > 0) {
      *result.add_operations() = std::move(operation);
    }
  }
  std::vector<v1::Interval> rows;
  intervals_->Export({.begin = begin, .end = end, .late_end = LastEnd()}, names, rows);
  for (v1::Interval& row : rows) *result.add_intervals() = std::move(row);
  const std::uint64_t counted = CountedInWindow(result);
  AddRates(counted, result);

  outcome.moved = Moved(result);
  outcome.waiting_share = WaitingShare(result);
  for (const std::unique_ptr<DataFeed>& feed : feeds_) outcome.making += feed->making();
  outcome.status = Status(counted);
  if (Result<void> sums = CheckSums(result); !sums) outcome.status = sums;
  return outcome;
}

v1::OperationResult Engine::CollectKind(std::size_t kind) const {
  v1::OperationResult operation;
  operation.set_operation(plan_->kinds[kind].name);
  const Histogram service = intervals_->Total(kind).ToHistogram();
  *operation.mutable_service() = convert::ToMessage(service);
  Histogram response;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;
  for (const Client& client : clients_) {
    count += client.tallies_[kind].count_ever();
    bytes += client.tallies_[kind].bytes_ever();
    errors += client.errors_[kind];
    if (!client.response_.empty()) response.Merge(client.response_[kind]);
    if (operation.first_error().empty() && client.first_error_kind_ == kind) {
      operation.set_first_error(client.first_error_);
    }
  }
  if (not_begun_ > 0) response.Merge(not_begun_response_[kind]);
  operation.set_count(count);
  operation.set_bytes(bytes);
  operation.set_error_count(errors);
  if (plan_->rate > 0) *operation.mutable_response() = convert::ToMessage(response);
  return operation;
}

// What the clients counted themselves against what came through the rows: a fault of ours would
// otherwise look like a measurement.
Result<void> Engine::CheckSums(const v1::StepResult& result) const {
  for (const v1::OperationResult& operation : result.operations()) {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t recorded = 0;
    for (const v1::Interval& row : result.intervals()) {
      for (const v1::IntervalOperation& part : row.operations()) {
        if (part.operation() != operation.operation()) continue;
        count += part.count();
        bytes += part.bytes();
        for (std::uint64_t bucket : part.service().count()) recorded += bucket;
        recorded += part.service().overflow_count();
      }
    }
    if (count == operation.count() && bytes == operation.bytes() && recorded == count) continue;
    return Fail(Errc::kInternal,
                fmt::format("step {}: {} {} operations with {} bytes were counted, but the "
                            "intervals sum up to {} with {}, {} of them with a latency",
                            plan_->step, operation.count(), operation.operation(),
                            operation.bytes(), count, bytes, recorded));
  }
  return {};
}

Result<void> Engine::Status(std::uint64_t counted) const {
  if (failure_) return std::unexpected(*failure_);
  if (cancelled_) return Fail(Errc::kCancelled, "step " + plan_->step, "cancelled while it ran");
  if (counted > 0) return {};
  return Fail(Errc::kTimedOut, "step " + plan_->step,
              "no operation was completed in the measured time; measure for longer");
}

double Engine::WaitingShare(const v1::StepResult& result) const {
  const std::int64_t window = result.measure_end_mono_ns() - result.measure_begin_mono_ns();
  if (window <= 0) return 0;
  Nanoseconds waiting{0};
  for (const Client& client : clients_) waiting += client.waiting_;
  return static_cast<double>(waiting.count()) /
         (static_cast<double>(window) * static_cast<double>(clients_.size()));
}

BytesMoved Engine::Moved(const v1::StepResult& result) const {
  BytesMoved moved;
  for (const v1::OperationResult& operation : result.operations()) {
    for (const OperationKind& kind : plan_->kinds) {
      if (!kind.counted || kind.name != operation.operation()) continue;
      const Bytes bytes(operation.bytes());
      if (kind.moves == Moves::kReads || kind.moves == Moves::kCopies) moved.read += bytes;
      if (kind.moves == Moves::kWrites || kind.moves == Moves::kCopies) moved.written += bytes;
    }
  }
  return moved;
}

// Offered against achieved: an open loop that cannot keep up must not pass for one that does.
void Engine::AddRates(std::uint64_t counted, v1::StepResult& result) const {
  if (plan_->rate <= 0) return;
  const double seconds =
      static_cast<double>(result.measure_end_mono_ns() - result.measure_begin_mono_ns()) * 1e-9;
  v1::Figure& offered = *result.add_figures();
  offered.set_name("offered_rate");
  offered.set_value(plan_->rate);
  offered.set_unit("op/s");
  v1::Figure& achieved = *result.add_figures();
  achieved.set_name("achieved_rate");
  achieved.set_value(seconds > 0 ? static_cast<double>(counted) / seconds : 0);
  achieved.set_unit("op/s");
  if (not_begun_ == 0) return;
  v1::Figure& not_begun = *result.add_figures();
  not_begun.set_name("operations_not_begun");
  not_begun.set_value(static_cast<double>(not_begun_));
  not_begun.set_lower_is_better(true);
}

}  // namespace labrack::workload
