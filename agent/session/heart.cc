#include "agent/session/heart.h"

#include <cstdlib>
#include <utility>

namespace labrack::session {

Heart::Heart(const ClockSync& clock_sync, Seed seed)
    : clock_sync_(clock_sync), random_(seed), thread_([this] { Run(); }) {}

Heart::~Heart() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Heart::Attach(std::shared_ptr<Connection> connection, Nanoseconds interval) {
  {
    const std::lock_guard lock(mutex_);
    connection_ = std::move(connection);
    interval_ = interval;
    burst_left_ = kBurst;
  }
  changed_.notify_all();
}

void Heart::SetBoard(v1::Heartbeat board) {
  const std::lock_guard lock(mutex_);
  board_ = std::move(board);
}

v1::Heartbeat Heart::Beat() {
  v1::Heartbeat beat = board_;
  double load = 0;
  if (getloadavg(&load, 1) == 1) beat.set_load_average_1m(load);
  if (const auto clock = clock_sync_.Best(MonotonicClock().Now())) {
    beat.set_round_trip_best_ns(clock->round_trip.count());
  }
  return beat;
}

void Heart::Run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!connection_) {
      changed_.wait(lock);
      continue;
    }
    const std::shared_ptr<Connection> connection = connection_;
    v1::Heartbeat beat = Beat();
    lock.unlock();
    connection->SendHeartbeat(std::move(beat));
    connection->CheckWrite(MonotonicClock().Now());
    lock.lock();
    // Spread by a tenth, so that a fleet does not beat in step.
    Nanoseconds pause = interval_ * (900 + static_cast<int>(random_.Below(201))) / 1000;
    if (burst_left_ > 0 && --burst_left_ > 0) pause = kBurstInterval;
    changed_.wait_for(lock, pause, [&] { return ended_ || connection_ != connection; });
  }
}

}  // namespace labrack::session
