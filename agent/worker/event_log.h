// EventLog: the trial's spool as its parts see it: phases, notes, steps, the result. Every record
// gets the next number and the time. A detail that does not fit on the disk is dropped and counted;
// an error of anything else is kept and given to whoever asks, since a trial that cannot say what
// it does must end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "agent/worker/spool/spool_writer.h"
#include "labrack/v1/fleet.pb.h"
#include "storage/base/clock.h"

namespace labrack::worker {

// Thread-safe.
class EventLog {
 public:
  // `bell` is called after records were added, with the lock released.
  EventLog(spool::SpoolWriter writer, const Clock& clock, std::function<void()> bell)
      : writer_(std::move(writer)), clock_(clock), bell_(std::move(bell)) {
    last_seq_ = writer_.next_seq() - 1;
  }

  Result<void> PhaseBegun(v1::PhaseKind phase);
  Result<void> PhaseEnded(const v1::PhaseRecord& record);
  void StepDone(const v1::StepResult& step);
  void Note(std::string text);
  // As Note, for whoever may not wait behind a sync that hangs; false: it was not written.
  bool TryNote(std::string text);
  // The last record; the spool is sealed.
  Result<void> Finish(const v1::AssignmentResult& result);

  // Never waits, whatever the disk under the spool does.
  std::uint64_t last_seq() const { return last_seq_; }
  std::uint64_t dropped_count() const { return dropped_count_; }

 private:
  Result<void> AddLocked(spool::RecordType type, spool::Durability durability,
                         v1::EventRecord record);
  Result<void> Add(spool::RecordType type, spool::Durability durability, v1::EventRecord record);

  std::mutex mutex_;  // guards writer_; held while it syncs
  spool::SpoolWriter writer_;
  const Clock& clock_;
  std::function<void()> bell_;
  std::atomic<std::uint64_t> last_seq_ = 0;
  std::atomic<std::uint64_t> dropped_count_ = 0;
};

}  // namespace labrack::worker
