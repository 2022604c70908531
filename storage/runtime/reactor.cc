#include "storage/runtime/reactor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "storage/base/check.h"

namespace labrack::runtime {
namespace {

// Completions and mail are looked for after so many resumptions at most, however much is ready.
constexpr int kResumptionsMax = 64;
constexpr std::size_t kDescribedMax = 32;

}  // namespace

Reactor::~Reactor() { LABRACK_CHECK(waiter_count_ == 0 && watch_first_ == nullptr); }

void Reactor::Wait(Waiter& waiter) {
  waiter.all_before = nullptr;
  waiter.all_after = waiting_;
  if (waiting_ != nullptr) waiting_->all_before = &waiter;
  waiting_ = &waiter;
  ++waiter_count_;
}

void Reactor::Wake(Waiter& waiter) {
  (waiter.all_before == nullptr ? waiting_ : waiter.all_before->all_after) = waiter.all_after;
  if (waiter.all_after != nullptr) waiter.all_after->all_before = waiter.all_before;
  --waiter_count_;
  PushReady(waiter);
}

void Reactor::Drive(std::coroutine_handle<> root) {
  root.resume();
  while (!root.done()) {
    bool idle = false;
    for (int i = 0; i < kResumptionsMax && !idle && !root.done(); ++i) {
      Waiter* waiter = PopReady();
      idle = waiter == nullptr;
      if (!idle) waiter->handle.resume();
    }
    if (root.done()) return;
    if (FireCancelled()) idle = false;
    if (FireBells()) idle = false;
    const std::optional<TimePoint> until =
        timers_.empty() ? std::nullopt : std::optional(timers_.front()->at);
    if (!Poll(idle, until) && idle && !until) Deadlock();
    FireTimers();
  }
}

std::string Reactor::DescribeWaiters() const {
  std::string text;
  std::size_t described = 0;
  for (const Waiter* waiter = waiting_; waiter != nullptr; waiter = waiter->all_after) {
    if (++described > kDescribedMax) {
      return text + "and " + std::to_string(waiter_count_ - kDescribedMax) + " more\n";
    }
    text += std::string(waiter->what) + " at " + waiter->where.file_name() + ":" +
            std::to_string(waiter->where.line()) + "\n";
  }
  return text;
}

void Reactor::Deadlock() const {
  std::fprintf(stderr, "deadlock: nothing can run, and %zu coroutines wait:\n%s", waiter_count_,
               DescribeWaiters().c_str());
  std::abort();
}

// --- timers ---

class Reactor::Sleep {
 public:
  Sleep(Reactor& reactor, TimePoint until, const CancelToken* cancel, std::source_location where)
      : reactor_(reactor) {
    timer_.at = until;
    timer_.cancel = cancel;
    timer_.waiter.what = "a time";
    timer_.waiter.where = where;
  }
  bool await_ready() const {
    return timer_.at <= reactor_.Now() || (timer_.cancel != nullptr && timer_.cancel->cancelled());
  }
  void await_suspend(std::coroutine_handle<> handle) {
    timer_.waiter.handle = handle;
    reactor_.AddTimer(timer_);
  }
  void await_resume() const {}

 private:
  Reactor& reactor_;
  Timer timer_;
};

Task<Result<void>> Reactor::SleepUntil(TimePoint until, const CancelToken* cancel) {
  Sleep sleep(*this, until, cancel, std::source_location::current());
  co_await sleep;
  if (cancel != nullptr && cancel->cancelled() && Now() < until) {
    co_return std::unexpected(Error(Errc::kCancelled));
  }
  co_return Result<void>();
}

void Reactor::AddTimer(Timer& timer) {
  timer.order = next_order_++;
  Wait(timer.waiter);
  timers_.push_back(&timer);
  timer.place = timers_.size() - 1;
  SiftUp(timer.place);
}

void Reactor::RemoveTimer(Timer& timer) {
  const std::size_t place = timer.place;
  Timer* last = timers_.back();
  timers_.pop_back();
  if (last == &timer) return;
  PlaceTimer(place, *last);
  SiftUp(place);
  SiftDown(last->place);
}

void Reactor::PlaceTimer(std::size_t place, Timer& timer) {
  timers_[place] = &timer;
  timer.place = place;
}

namespace {

template <typename Timer>
bool Earlier(const Timer& a, const Timer& b) {
  return a.at != b.at ? a.at < b.at : a.order < b.order;
}

}  // namespace

void Reactor::SiftUp(std::size_t place) {
  Timer& timer = *timers_[place];
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!Earlier(timer, *timers_[parent])) break;
    PlaceTimer(place, *timers_[parent]);
    place = parent;
  }
  PlaceTimer(place, timer);
}

void Reactor::SiftDown(std::size_t place) {
  Timer& timer = *timers_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= timers_.size()) break;
    if (child + 1 < timers_.size() && Earlier(*timers_[child + 1], *timers_[child])) ++child;
    if (!Earlier(*timers_[child], timer)) break;
    PlaceTimer(place, *timers_[child]);
    place = child;
  }
  PlaceTimer(place, timer);
}

void Reactor::FireTimers() {
  if (timers_.empty()) return;
  const TimePoint now = Now();
  while (!timers_.empty() && timers_.front()->at <= now) {
    Timer& timer = *timers_.front();
    RemoveTimer(timer);
    Wake(timer.waiter);
  }
}

// Cancelling is rare and comes from anywhere, signal handlers included, so it only counts; who
// waits for a cancelled token is looked up here.
bool Reactor::FireCancelled() {
  const std::uint64_t count = CancelToken::CancelCount();
  if (count == cancels_seen_) return false;
  cancels_seen_ = count;
  std::vector<Timer*> cancelled;
  for (Timer* timer : timers_) {
    if (timer->cancel != nullptr && timer->cancel->cancelled()) cancelled.push_back(timer);
  }
  std::ranges::sort(cancelled, {}, [](const Timer* timer) { return timer->order; });
  for (Timer* timer : cancelled) {
    RemoveTimer(*timer);
    Wake(timer->waiter);
  }
  const bool watched = FireWatches();
  return watched || !cancelled.empty();
}

void Reactor::Watch(CancelWatch& watch) {
  watch.before = watch_last_;
  watch.after = nullptr;
  (watch_last_ == nullptr ? watch_first_ : watch_last_->after) = &watch;
  watch_last_ = &watch;
}

void Reactor::Unwatch(CancelWatch& watch) {
  (watch.before == nullptr ? watch_first_ : watch.before->after) = watch.after;
  (watch.after == nullptr ? watch_last_ : watch.after->before) = watch.before;
}

// Who is told may end other watches, so each search begins anew.
bool Reactor::FireWatches() {
  bool fired = false;
  for (CancelWatch* watch = watch_first_; watch != nullptr;) {
    if (!watch->token->cancelled()) {
      watch = watch->after;
      continue;
    }
    fired = true;
    Unwatch(*watch);
    watch->cancelled(*watch);
    watch = watch_first_;
  }
  return fired;
}

// --- bells ---

// A bell knows nobody who waits for it, so those who do are asked after each round of resumptions.
struct Reactor::BellWait {
  BellWait(Reactor& its_reactor, Bell& its_bell, std::source_location where)
      : reactor(its_reactor), bell(its_bell) {
    waiter.what = "a bell";
    waiter.where = where;
  }
  bool await_ready() const { return bell.TakeRing(); }
  void await_suspend(std::coroutine_handle<> handle) {
    waiter.handle = handle;
    reactor.Wait(waiter);
    next = reactor.bell_waits_;
    reactor.bell_waits_ = this;
  }
  void await_resume() const {}

  Reactor& reactor;
  Bell& bell;
  Waiter waiter;
  BellWait* next = nullptr;
};

Task<void> Reactor::WaitFor(Bell* bell) {
  BellWait wait(*this, *bell, std::source_location::current());
  co_await wait;
}

bool Reactor::FireBells() {
  bool fired = false;
  for (BellWait** link = &bell_waits_; *link != nullptr;) {
    BellWait& wait = **link;
    if (!wait.bell.TakeRing()) {
      link = &wait.next;
      continue;
    }
    fired = true;
    *link = wait.next;
    Wake(wait.waiter);
  }
  return fired;
}

}  // namespace labrack::runtime
