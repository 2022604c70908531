#include "agent/worker/event_log.h"

#include <utility>

namespace labrack::worker {
namespace {

// A note is for people; more than this is the business of worker.log.
constexpr std::size_t kNoteMax = 4096;

v1::EventRecord NoteOf(std::string text) {
  if (text.size() > kNoteMax) text.resize(kNoteMax);
  v1::EventRecord record;
  record.set_log(std::move(text));
  return record;
}

}  // namespace

Result<void> EventLog::AddLocked(spool::RecordType type, spool::Durability durability,
                                 v1::EventRecord record) {
  record.set_seq(writer_.next_seq());
  record.set_mono_ns(clock_.Now().time_since_epoch().count());
  Result<void> added =
      writer_.Append(type, durability, record.mono_ns(), record.SerializeAsString());
  dropped_count_ = writer_.dropped_count();
  last_seq_ = writer_.next_seq() - 1;
  if (!added || type != spool::RecordType::kResult) return added;
  return writer_.Seal();
}

Result<void> EventLog::Add(spool::RecordType type, spool::Durability durability,
                           v1::EventRecord record) {
  {
    const std::lock_guard lock(mutex_);
    Result<void> added = AddLocked(type, durability, std::move(record));
    if (!added) return added;
  }
  bell_();
  return {};
}

Result<void> EventLog::PhaseBegun(v1::PhaseKind phase) {
  v1::EventRecord record;
  record.set_phase_begun(phase);
  // From the gate to the last operation nothing is synced: it would disturb what is measured.
  const bool measuring =
      phase == v1::PHASE_WARM_UP || phase == v1::PHASE_MEASURE || phase == v1::PHASE_DRAIN;
  return Add(spool::RecordType::kState,
             measuring ? spool::Durability::kWithNext : spool::Durability::kNow, std::move(record));
}

Result<void> EventLog::PhaseEnded(const v1::PhaseRecord& phase) {
  v1::EventRecord record;
  *record.mutable_phase() = phase;
  // The record of the phase that follows at once, or the result, makes this one durable too.
  return Add(spool::RecordType::kState, spool::Durability::kWithNext, std::move(record));
}

void EventLog::StepDone(const v1::StepResult& step) {
  v1::EventRecord record;
  *record.mutable_step_done() = step;
  // A loss is counted by the writer; the step stands in the result again.
  (void)Add(spool::RecordType::kDetail, spool::Durability::kWithNext, std::move(record));
}

void EventLog::Note(std::string text) {
  (void)Add(spool::RecordType::kDetail, spool::Durability::kWithNext, NoteOf(std::move(text)));
}

bool EventLog::TryNote(std::string text) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  return AddLocked(spool::RecordType::kDetail, spool::Durability::kWithNext,
                   NoteOf(std::move(text)))
      .has_value();
}

Result<void> EventLog::Finish(const v1::AssignmentResult& result) {
  v1::EventRecord record;
  *record.mutable_result() = result;
  return Add(spool::RecordType::kResult, spool::Durability::kNow, std::move(record));
}

}  // namespace labrack::worker
