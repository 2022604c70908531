#include "storage/block/queue/io_queue.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

using runtime::CancelWatch;

std::unique_ptr<QueuePolicy> MakePolicy(const QueueOptions& options) {
  switch (options.policy) {
    case QueueOptions::Policy::kLegacy:
      return MakeLegacyPolicy(options.legacy);
    case QueueOptions::Policy::kClasses:
      return MakeClassesPolicy(options.classes);
  }
  LABRACK_CHECK(false);
}

// What went wrong with the device and not with some of its blocks.
bool ConcernsAllBlocks(Errc code) { return code == Errc::kUnavailable || code == Errc::kTimedOut; }

}  // namespace

// Suspends until the request leads a run or has been completed.
class IoQueue::Turn {
 public:
  Turn(IoQueue& queue, Request& request, std::source_location where)
      : queue_(queue), request_(request) {
    request_.waiter.what = "its turn in an I/O queue";
    request_.waiter.where = where;
  }
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    request_.waiter.handle = handle;
    queue_.reactor_.Wait(request_.waiter);
    queue_.Enter(request_);
    queue_.Dispatch(QueuePolicy::Occasion::kArrival, request_.arrived);
  }
  void await_resume() const {}

 private:
  IoQueue& queue_;
  Request& request_;
};

Result<std::unique_ptr<IoQueue>> IoQueue::Create(runtime::Reactor& reactor, BlockDevice& device,
                                                 const QueueOptions& options) {
  std::string wrong;
  for (const Error& problem : options.Validate()) {
    wrong += (wrong.empty() ? "" : "\n") + problem.subject() + ": " + problem.note();
  }
  if (!wrong.empty()) return Fail(Errc::kInvalidArgument, "queue options", wrong);
  return std::unique_ptr<IoQueue>(new IoQueue(reactor, device, options));
}

IoQueue::IoQueue(runtime::Reactor& reactor, BlockDevice& device, const QueueOptions& options)
    : reactor_(reactor),
      device_(device),
      geometry_(device.geometry()),
      aggregation_(options.aggregation),
      policy_(MakePolicy(options)) {
  buffers_.reserve(aggregation_.buffers_max);
  free_buffers_.reserve(aggregation_.buffers_max);
}

IoQueue::~IoQueue() {
  LABRACK_CHECK(waiting_count_ == 0);
  for (const QueueClassStats& stats : stats_.classes) LABRACK_CHECK(stats.active == 0);
}

// --- what callers see ---

Task<Result<void>> IoQueue::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(into.size())));
  if (!StartsAtOnce(io.priority)) {
    Request request(Direction::kRead, io, at, into, {});
    Result<void> done = co_await Queued(&request);
    co_return done;
  }
  StatsOf(io.priority).waits.Record(0);
  Began(io.priority, at + Bytes(into.size()));
  Result<void> done = co_await device_.Read(io, at, into);
  Ended(io.priority);
  co_return done;
}

Task<Result<void>> IoQueue::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  if (!StartsAtOnce(io.priority)) {
    Request request(Direction::kWrite, io, at, {}, from);
    Result<void> done = co_await Queued(&request);
    co_return done;
  }
  StatsOf(io.priority).waits.Record(0);
  Began(io.priority, at + Bytes(from.size()));
  Result<void> done = co_await device_.Write(io, at, from);
  Ended(io.priority);
  co_return done;
}

Task<Result<void>> IoQueue::WriteOptional(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(geometry_.Covers(at, Bytes(from.size())));
  if (StartsAtOnce(io.priority)) {
    ++stats_.optional_dropped_count;
    co_return Result<void>();
  }
  Request request(Direction::kWrite, io, at, {}, from);
  request.optional = true;
  Result<void> done = co_await Queued(&request);
  co_return done;
}

Task<Result<void>> IoQueue::Flush(IoContext io) {
  ++stats_.flush_count;
  Result<void> done = co_await device_.Flush(io);
  co_return done;
}

// --- waiting ---

Task<Result<void>> IoQueue::Queued(Request* request) {
  const runtime::CancelToken* cancel = request->io.cancel;
  if (cancel != nullptr && cancel->cancelled()) {
    ++StatsOf(request->io.priority).cancelled_count;
    co_return std::unexpected(Error(Errc::kCancelled));
  }
  Turn turn(*this, *request, std::source_location::current());
  co_await turn;
  if (request->state == Request::State::kLeads) {
    Result<void> done = co_await Lead(request);
    co_return done;
  }
  co_return std::move(request->result);
}

void IoQueue::Enter(Request& request) {
  request.arrived = reactor_.Now();
  request.order = next_order_++;
  request.flushes = stats_.flush_count;
  policy_->Add(request);
  if (aggregates()) TreeOf(request.direction).insert(request);
  ++waiting_count_;
  QueueClassStats& stats = StatsOf(request.io.priority);
  if (stats.waiting == 0) starving_since_[request.class_index()] = request.arrived;
  stats.waiting_max = std::max(stats.waiting_max, ++stats.waiting);
  if (request.io.cancel != nullptr) {
    request.token = request.io.cancel;
    request.cancelled = &IoQueue::Cancelled;
    request.owner = this;
    reactor_.Watch(request);
  }
}

// For whatever reason but a cancel.
void IoQueue::Leave(Request& request, TimePoint now) {
  if (request.io.cancel != nullptr) reactor_.Unwatch(request);
  Remove(request);
  TimePoint& since = starving_since_[request.class_index()];
  QueueClassStats& stats = StatsOf(request.io.priority);
  stats.starvation_max = std::max(stats.starvation_max, now - since);
  since = now;
  if (!request.optional) stats.waits.Record(now - request.arrived);
}

void IoQueue::Remove(Request& request) {
  policy_->Remove(request);
  if (aggregates()) {
    RequestsByOffset& tree = TreeOf(request.direction);
    tree.erase(tree.iterator_to(request));
  }
  --waiting_count_;
  --StatsOf(request.io.priority).waiting;
}

void IoQueue::Cancelled(CancelWatch& watch) {
  Request& request = static_cast<Request&>(watch);
  IoQueue& queue = *request.owner;
  queue.Remove(request);
  ++queue.StatsOf(request.io.priority).cancelled_count;
  queue.Complete(request, std::unexpected(Error(Errc::kCancelled)));
}

void IoQueue::Complete(Request& request, Result<void> result) {
  request.result = std::move(result);
  request.state = Request::State::kCompleted;
  reactor_.Wake(request.waiter);
}

// --- starting ---

void IoQueue::Began(PriorityClass priority, Offset end) {
  policy_->Began(priority, end);
  QueueClassStats& stats = StatsOf(priority);
  ++stats.started_count;
  stats.active_max = std::max(stats.active_max, ++stats.active);
  ++stats.depths[std::min<std::size_t>(stats.active, QueueClassStats::kDepthMax)];
}

void IoQueue::Ended(PriorityClass priority) {
  policy_->Ended(priority);
  --StatsOf(priority).active;
  if (waiting_count_ != 0) Dispatch(QueuePolicy::Occasion::kEnd, reactor_.Now());
}

void IoQueue::Dispatch(QueuePolicy::Occasion occasion, TimePoint now) {
  std::uint32_t started = 0;
  while (Request* first = policy_->Next(occasion, started)) {
    if (first->optional) {
      Leave(*first, now);
      ++stats_.optional_dropped_count;
      Complete(*first, {});
      continue;
    }
    Start(*first, now);
    ++started;
  }
}

void IoQueue::Start(Request& leader, TimePoint now) {
  FormRun(leader);
  for (Request* member = leader.run_first; member != nullptr; member = member->run_next) {
    Leave(*member, now);
    if (member == &leader) continue;
    ++(member->optional ? stats_.optional_written_count
                        : StatsOf(member->io.priority).merged_count);
  }
  Began(leader.io.priority, leader.run_first->at + leader.run_length);
  leader.state = Request::State::kLeads;
  reactor_.Wake(leader.waiter);
}

// --- runs ---

// `upper` begins where `lower` ends, or as near as its direction allows.
bool IoQueue::Joins(const Request& lower, const Request& upper) const {
  if (upper.io.durable != lower.io.durable || upper.flushes != lower.flushes) return false;
  if (upper.at < lower.end()) return false;
  const Bytes gap = upper.at - lower.end();
  return upper.direction == Direction::kRead ? gap <= aggregation_.read_gap : gap == Bytes(0);
}

// The last request, upwards or downwards, that can be part of one I/O with `from`; `length` grows
// by what it adds. Optional writes are passed over, but never the last.
Request& IoQueue::Extend(Request& from, bool upwards, Bytes& length) {
  RequestsByOffset& tree = TreeOf(from.direction);
  const Bytes length_before = length;
  Request* last = &from;
  Request* reached = &from;
  Bytes optional_length;
  for (auto place = tree.iterator_to(from);;) {
    if (upwards ? ++place == tree.end() : place == tree.begin()) return *last;
    if (!upwards) --place;
    Request& next = *place;
    if (upwards ? !Joins(*reached, next) : !Joins(next, *reached)) return *last;
    const Bytes added = upwards ? next.end() - from.end() : from.at - next.at;
    if (length_before + added > aggregation_.size_max) return *last;
    optional_length = next.optional ? optional_length + next.length() : Bytes(0);
    if (optional_length > aggregation_.write_gap) return *last;
    if (!next.optional) {
      last = &next;
      length = length_before + added;
    }
    reached = &next;
  }
}

// Fills in all that a run has; `buffer` only when it has several members.
void IoQueue::FormRun(Request& leader) {
  leader.run_first = &leader;
  leader.run_next = nullptr;
  leader.run_length = leader.length();
  if (leader.run_length >= aggregation_.size_max) return;
  Request& last = Extend(leader, true, leader.run_length);
  Request& first = Extend(leader, false, leader.run_length);
  if (&first == &last) return;
  leader.buffer = TakeBuffer();
  if (leader.buffer == nullptr) {
    ++stats_.buffer_miss_count;
    leader.run_length = leader.length();
    return;
  }
  RequestsByOffset& tree = TreeOf(leader.direction);
  leader.run_first = &first;
  for (Request* member = &first; member != &last; member = member->run_next) {
    member->run_next = &*std::next(tree.iterator_to(*member));
  }
  last.run_next = nullptr;
}

AlignedBuffer* IoQueue::TakeBuffer() {
  if (free_buffers_.empty()) {
    if (buffers_.size() == aggregation_.buffers_max) return nullptr;
    buffers_.push_back(std::make_unique<AlignedBuffer>(aggregation_.size_max));
    return buffers_.back().get();
  }
  AlignedBuffer* buffer = free_buffers_.back();
  free_buffers_.pop_back();
  return buffer;
}

// --- the I/O ---

Task<Result<void>> IoQueue::Single(const Request& request) {
  if (request.direction == Direction::kRead)
    return device_.Read(request.io, request.at, request.into);
  return device_.Write(request.io, request.at, request.from);
}

// By the coroutine of the request that leads. Members other than it go on when they are woken, and
// with them their frames go.
Task<Result<void>> IoQueue::Lead(Request* leader) {
  if (leader->buffer == nullptr) {
    Result<void> done = co_await Single(*leader);
    Ended(leader->io.priority);
    co_return done;
  }
  Result<void> done = co_await WholeRun(leader);
  if (!done && !ConcernsAllBlocks(done.error().code())) {
    ++stats_.split_count;
    co_await MemberByMember(leader);
  } else {
    for (Request* member = leader->run_first; member != nullptr; member = member->run_next) {
      member->result = done;
    }
  }
  free_buffers_.push_back(leader->buffer);
  for (Request* member = leader->run_first; member != nullptr;) {
    Request* next = member->run_next;
    if (member != leader) Complete(*member, std::move(member->result));
    member = next;
  }
  Ended(leader->io.priority);
  co_return std::move(leader->result);
}

// No member's cancel token goes along: it would cancel the others.
Task<Result<void>> IoQueue::WholeRun(const Request* leader) {
  IoContext io = leader->io;
  io.cancel = nullptr;
  const Offset at = leader->run_first->at;
  const MutableView buffer = leader->buffer->first(leader->run_length);
  if (leader->direction == Direction::kWrite) {
    for (const Request* member = leader->run_first; member != nullptr; member = member->run_next) {
      std::ranges::copy(member->from, buffer.subspan((member->at - at).size()).begin());
    }
    Result<void> written = co_await device_.Write(io, at, buffer);
    co_return written;
  }
  Result<void> read = co_await device_.Read(io, at, buffer);
  if (!read) co_return read;
  for (const Request* member = leader->run_first; member != nullptr; member = member->run_next) {
    std::ranges::copy(buffer.subspan((member->at - at).size(), member->into.size()),
                      member->into.begin());
  }
  co_return read;
}

Task<void> IoQueue::MemberByMember(Request* leader) {
  for (Request* member = leader->run_first; member != nullptr; member = member->run_next) {
    if (member->optional) continue;
    member->io.priority = leader->io.priority;  // as which it is counted at the device
    member->result = co_await Single(*member);
  }
}

}  // namespace labrack::block
