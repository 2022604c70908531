// Heart: heartbeats on a thread of their own, which never touches a disk, so that an agent whose
// disks hang is still seen alive. Heartbeats double as clock probes: eight in a row at the
// beginning, one each interval afterwards.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "agent/session/connection.h"
#include "labrack/v1/fleet.pb.h"
#include "storage/base/random.h"

namespace labrack::session {

class Heart {
 public:
  static constexpr int kBurst = 8;
  static constexpr Nanoseconds kBurstInterval = std::chrono::milliseconds(5);

  Heart(const ClockSync& clock_sync, Seed seed);
  ~Heart();

  // Beats on this connection from now on; null: none.
  void Attach(std::shared_ptr<Connection> connection, Nanoseconds interval);
  // What the next heartbeats say.
  void SetBoard(v1::Heartbeat board);

 private:
  void Run();
  v1::Heartbeat Beat();  // with mutex_ held

  const ClockSync& clock_sync_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::shared_ptr<Connection> connection_;
  Nanoseconds interval_{0};
  int burst_left_ = 0;
  v1::Heartbeat board_;
  bool ended_ = false;
  Random random_;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace labrack::session
