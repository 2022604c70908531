// Virtual time for tests: an Env and Launcher in one, on one thread. A sleep suspends its coroutine
// until nothing else can run; then time jumps to the earliest one that is due. Ties go by the order
// in which they fell asleep, so that everything replays.
#pragma once

#include <coroutine>
#include <map>
#include <utility>
#include <vector>

#include "storage/runtime/env.h"
#include "storage/runtime/launcher.h"

namespace labrack {

class VirtualEnv final : public runtime::Env, public runtime::Launcher {
 public:
  TimePoint Now() const override { return now_; }

  runtime::Task<Result<void>> SleepUntil(TimePoint until,
                                         const runtime::CancelToken* cancel) override {
    if (cancel != nullptr && cancel->cancelled())
      co_return std::unexpected(Error(Errc::kCancelled));
    if (until > now_) co_await Sleep{this, until, cancel};
    if (until > now_) co_return std::unexpected(Error(Errc::kCancelled));
    co_return Result<void>();
  }

  runtime::Task<void> WaitFor(runtime::Bell* bell) override {
    if (!bell->TakeRing()) co_await Sleep{this, TimePoint::max(), nullptr, bell};
  }

  Result<void> RunAll(std::vector<runtime::Task<void>> tasks) override {
    for (const runtime::Task<void>& task : tasks) task.handle().resume();
    while (!sleepers_.empty()) {
      auto next = sleepers_.begin();
      bool woken = false;
      for (auto it = sleepers_.begin(); it != sleepers_.end(); ++it) {
        if (it->second.Woken()) {
          next = it;
          woken = true;
          break;
        }
      }
      const Sleeper sleeper = next->second;
      LABRACK_CHECK(woken || sleeper.bell == nullptr);  // else all wait for each other
      if (!woken) now_ = std::max(now_, next->first.first);
      sleepers_.erase(next);
      sleeper.handle.resume();
    }
    for (const runtime::Task<void>& task : tasks) LABRACK_CHECK(task.handle().done());
    return {};
  }

 private:
  struct Sleeper {
    std::coroutine_handle<> handle;
    const runtime::CancelToken* cancel;
    runtime::Bell* bell;

    bool Woken() const {
      return (cancel != nullptr && cancel->cancelled()) || (bell != nullptr && bell->TakeRing());
    }
  };
  struct Sleep {
    VirtualEnv* env;
    TimePoint until;
    const runtime::CancelToken* cancel;
    runtime::Bell* bell = nullptr;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) const {
      env->sleepers_[{until, env->next_++}] = {handle, cancel, bell};
    }
    void await_resume() const {}
  };

  TimePoint now_{std::chrono::seconds(1000)};
  std::uint64_t next_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, Sleeper> sleepers_;
};

}  // namespace labrack
