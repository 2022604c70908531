#include "controller/cli/follow.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "storage/base/units.h"

namespace labrack::cli {
namespace {

constexpr Nanoseconds kTick = std::chrono::milliseconds(100);
constexpr Nanoseconds kBackoffFirst = std::chrono::milliseconds(200);
constexpr Nanoseconds kBackoffMax = std::chrono::seconds(5);
// Events that wait for the view. The reader waits when it is full, and gRPC's flow control with it.
constexpr std::size_t kQueueMax = 1024;

// One Watch stream, read on a thread of its own so that the view ticks whatever the network does.
class Stream {
 public:
  Stream(Client& client, const std::string& run_id)
      : client_(client), thread_([this, run_id] { Read(run_id); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    context_.TryCancel();
    thread_.join();
  }

  std::deque<v1::RunEvent> Take() {
    std::deque<v1::RunEvent> events;
    {
      const std::lock_guard lock(mutex_);
      events.swap(events_);
    }
    room_.notify_all();
    return events;
  }
  // Once the stream has ended and every event has been taken.
  std::optional<grpc::Status> Ended() {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) return std::nullopt;
    return status_;
  }

 private:
  void Read(const std::string& run_id) {
    v1::WatchRequest request;
    request.set_run_id(run_id);
    const std::unique_ptr<grpc::ClientReader<v1::RunEvent>> reader =
        client_.stub().Watch(&context_, request);
    v1::RunEvent event;
    while (reader->Read(&event)) {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return stopping_ || events_.size() < kQueueMax; });
      if (stopping_) break;
      events_.push_back(std::move(event));
    }
    const grpc::Status status = reader->Finish();
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

  Client& client_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<v1::RunEvent> events_;
  std::optional<grpc::Status> status_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

bool IsConnectionLoss(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::CANCELLED ||
         status.error_code() == grpc::StatusCode::UNKNOWN ||
         status.error_code() == grpc::StatusCode::INTERNAL;
}

class Follower {
 public:
  Follower(Client& client, const FollowOptions& options, ProgressView& view, Interrupts& interrupts)
      : client_(client),
        options_(options),
        view_(view),
        interrupts_(interrupts),
        started_(clock_.Now()),
        last_contact_(started_) {}

  FollowResult Run() {
    stream_ = std::make_unique<Stream>(client_, options_.run_id);
    while (!Step()) {
      view_.OnTick(clock_.Now());
      // After the first signal WaitFor would return at once.
      if (interrupts_.signal()) {
        std::this_thread::sleep_for(kTick);
      } else {
        interrupts_.WaitFor(kTick);
      }
    }
    view_.Finish(clock_.Now());
    result_.summary = view_.state().summary();
    result_.clean_up_limit = options_.clean_up_limit;
    return result_;
  }

 private:
  // One look at everything that can have happened; true when following is over.
  bool Step() {
    if (TakeEvents()) return true;
    Tend();
    if (failure_ ? OnFailure() : interrupts_.signal() && OnInterrupt()) return true;
    if (options_.limit && clock_.Now() - started_ >= *options_.limit) {
      return End(FollowEnd::kTimedOut);
    }
    return stream_ == nullptr ? Reconnect() : CheckStream();
  }

  bool End(FollowEnd end, std::optional<Error> error = std::nullopt) {
    result_.end = end;
    result_.error = std::move(error);
    return true;
  }

  bool TakeEvents() {
    if (stream_ == nullptr) return false;
    for (const v1::RunEvent& event : stream_->Take()) {
      last_contact_ = clock_.Now();
      backoff_ = kBackoffFirst;
      lost_ = false;
      view_.OnEvent(event, last_contact_);
    }
    if (!view_.state().ended()) return false;
    if (failure_) return End(FollowEnd::kFailed, failure_);
    return End(cancel_asked_at_ ? FollowEnd::kInterrupted : FollowEnd::kRunEnded);
  }

  void Tend() {
    if (!options_.tend || failure_) return;
    const Result<std::string> tended = options_.tend();
    if (!tended) {
      failure_ = tended.error();
      cancel_heard_ = false;  // with this reason, if there was another
      failed_at_ = clock_.Now();
    } else if (!tended->empty()) {
      view_.Say(*tended);
    }
  }

  // Cancels once, then waits: until the run has ended, the limit has passed, or nobody is left who
  // could clean up. An agent that is gone for good would keep the run from its end for long.
  bool OnFailure() {
    const TimePoint now = clock_.Now();
    if (!std::exchange(cancel_heard_, true)) {
      const Result<v1::CancelReply> cancelled =
          client_.Cancel(options_.run_id, fmt::format("the lab failed: {}", failure_->ToString()));
      if (!cancelled) {
        view_.Say(fmt::format("cancel: {}", cancelled.error().ToString()));
        return End(FollowEnd::kFailed, failure_);
      }
      look_again_at_ = now;
    }
    if (now - failed_at_ >= options_.clean_up_limit) return End(FollowEnd::kFailed, failure_);
    if (now < look_again_at_) return false;
    look_again_at_ = now + kBackoffFirst;
    return !SomebodyCleansUp() && End(FollowEnd::kFailed, failure_);
  }

  bool SomebodyCleansUp() {
    const Result<v1::HostsReply> hosts = client_.Hosts();
    return hosts && std::ranges::any_of(hosts->hosts(), [](const v1::HostRecord& host) {
             return host.session_state() == "ONLINE" && !host.working_on().empty();
           });
  }

  bool OnInterrupt() {
    if (!options_.cancel_on_interrupt) return End(FollowEnd::kInterrupted);
    if (!cancel_asked_at_) {
      cancel_asked_at_ = clock_.Now();
      view_.Say("interrupted: cancelling the run and cleaning up; once more to stop at once");
    }
    // Cancel is asked again until the controller has heard it.
    if (!cancel_heard_ && clock_.Now() >= cancel_again_at_) {
      cancel_heard_ = client_.Cancel(options_.run_id, "interrupted by its user").has_value();
      cancel_again_at_ = clock_.Now() + kBackoffFirst;
    }
    if (clock_.Now() - *cancel_asked_at_ >= options_.clean_up_limit) {
      return End(FollowEnd::kNotCleanedUp);
    }
    return false;
  }

  bool CheckStream() {
    const std::optional<grpc::Status> status = stream_->Ended();
    if (!status) return false;
    if (!status->ok() && !IsConnectionLoss(*status)) {
      return End(FollowEnd::kFailed, client_.Explain(*status));
    }
    // The controller of a lab that failed does not come back.
    if (failure_) return End(FollowEnd::kFailed, failure_);
    // Also when a controller that shuts down ended the stream in order: the run goes on.
    if (!lost_) view_.Say(fmt::format("connection to {} lost; trying again", client_.address()));
    lost_ = true;
    last_error_ = status->ok() ? Error(Errc::kUnavailable, client_.address(), "the stream ended")
                               : client_.Explain(*status);
    stream_.reset();
    again_at_ = clock_.Now() + backoff_;
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
    return false;
  }

  bool Reconnect() {
    const TimePoint now = clock_.Now();
    if (now - last_contact_ >= options_.reconnect_limit) {
      return End(FollowEnd::kConnectionLost, last_error_);
    }
    if (now < again_at_) return false;
    stream_ = std::make_unique<Stream>(client_, options_.run_id);
    return false;
  }

  Client& client_;
  const FollowOptions& options_;
  ProgressView& view_;
  Interrupts& interrupts_;
  const Clock& clock_ = MonotonicClock();
  TimePoint started_;
  TimePoint last_contact_;
  TimePoint again_at_;
  TimePoint cancel_again_at_;
  Nanoseconds backoff_ = kBackoffFirst;
  std::optional<TimePoint> cancel_asked_at_;
  bool cancel_heard_ = false;
  bool lost_ = false;
  std::optional<Error> failure_;  // of tend()
  TimePoint failed_at_;
  TimePoint look_again_at_;
  std::optional<Error> last_error_;
  std::unique_ptr<Stream> stream_;
  FollowResult result_;
};

}  // namespace

FollowResult Follow(Client& client, const FollowOptions& options, ProgressView& view,
                    Interrupts& interrupts) {
  return Follower(client, options, view, interrupts).Run();
}

}  // namespace labrack::cli
