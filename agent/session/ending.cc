#include "agent/session/ending.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/worker/result_size.h"
#include "agent/worker/spool/spool_reader.h"
#include "agent/worker/spool/spool_writer.h"
#include "storage/base/clock.h"

namespace labrack::session {
namespace {

struct Progress {
  v1::PhaseKind phase = v1::PHASE_UNSPECIFIED;  // the last one begun
  bool ended = false;                           // and whether its end was recorded
  std::int64_t begun_ns = 0;
};

Progress ReadProgress(const std::vector<v1::EventRecord>& events, v1::AssignmentResult& result) {
  Progress progress;
  for (const v1::EventRecord& event : events) {
    if (event.body_case() == v1::EventRecord::kPhaseBegun) {
      progress = {.phase = event.phase_begun(), .ended = false, .begun_ns = event.mono_ns()};
    }
    if (event.has_phase()) {
      *result.add_phases() = event.phase();
      progress.ended = true;
    }
    if (event.has_step_done()) *result.add_steps() = event.step_done();
  }
  return progress;
}

std::string PhaseText(v1::PhaseKind phase) {
  // PHASE_TEAR_DOWN -> "tear down"
  std::string text = v1::PhaseKind_Name(phase).substr(6);
  for (char& c : text) c = c == '_' ? ' ' : static_cast<char>(c | 0x20);
  return text;
}

v1::Outcome OutcomeOf(const WorkerEnd& end) {
  if (!end.started) return end.stop_reason ? v1::OUTCOME_CANCELLED : v1::OUTCOME_NOT_STARTED;
  if (end.stop_reason) return v1::OUTCOME_CANCELLED;
  if (end.timed_out) return v1::OUTCOME_TIMED_OUT;
  return v1::OUTCOME_CRASHED;
}

std::string HowItEnded(const WorkerEnd& end, const Progress& progress) {
  if (!end.started) return end.stop_reason.value_or(end.how);
  std::string where = "before the first phase";
  if (progress.phase != v1::PHASE_UNSPECIFIED) {
    where = (progress.ended ? "after " : "in ") + PhaseText(progress.phase);
  }
  if (end.host_rebooted)
    return fmt::format("the host was restarted while the worker was {}", where);
  std::string reason = fmt::format("the worker ended without a result, {}: {}", where, end.how);
  if (end.timed_out) reason = fmt::format("the worker did not end {} in time: {}", where, end.how);
  if (end.stop_reason) reason = fmt::format("{} ({})", *end.stop_reason, reason);
  return reason;
}

std::string ReasonOf(const WorkerEnd& end, const Progress& progress) {
  const std::string reason = HowItEnded(end, progress);
  if (end.held_up.empty()) return reason;
  return fmt::format("{}; nothing could be written then: {}", reason, end.held_up);
}

}  // namespace

v1::AssignmentResult ResultOfDeadTrial(const v1::AssignmentSpec& spec, const std::string& agent_id,
                                       const std::string& host_name, const WorkerEnd& end,
                                       const CleanUp& clean_up,
                                       const std::vector<v1::EventRecord>& events) {
  v1::AssignmentResult result;
  result.set_assignment_id(spec.assignment_id());
  result.set_epoch(spec.epoch());
  result.set_agent_id(agent_id);
  result.set_host_name(host_name);
  result.set_clock("monotonic");
  const Progress progress = ReadProgress(events, result);
  const std::string reason = ReasonOf(end, progress);
  if (progress.phase != v1::PHASE_UNSPECIFIED && !progress.ended) {
    v1::PhaseRecord& phase = *result.add_phases();
    phase.set_phase(progress.phase);
    phase.set_begin_mono_ns(progress.begun_ns);
    phase.set_end_mono_ns(progress.begun_ns);
    if (!events.empty()) phase.set_end_mono_ns(events.back().mono_ns());
    phase.set_end(end.stop_reason ? v1::PHASE_END_CANCELLED
                  : end.timed_out ? v1::PHASE_END_TIMED_OUT
                                  : v1::PHASE_END_FAILED);
    phase.set_reason(reason);
  }
  result.mutable_measurement()->set_outcome(OutcomeOf(end));
  result.mutable_measurement()->set_reason(reason);
  const bool building = end.started && progress.phase <= v1::PHASE_SETTLE;
  v1::Verdict3& environment = *result.mutable_environment_verdict();
  environment.set_outcome(v1::OUTCOME_OK);
  if (end.host_rebooted || (building && !end.stop_reason)) {
    environment.set_outcome(v1::OUTCOME_CRASHED);
    environment.set_reason(reason);
  }
  v1::Verdict3& cleaned = *result.mutable_clean_up();
  cleaned.set_outcome(clean_up.left.empty() ? v1::OUTCOME_OK : v1::OUTCOME_FAILED);
  cleaned.set_reason(clean_up.left);
  worker::FitResult(result);
  return result;
}

Result<void> EndSpool(const worker::TrialFiles& files, const v1::AssignmentSpec& spec,
                      const std::string& agent_id, const std::string& host_name,
                      const WorkerEnd& end, const CleanUp& clean_up) {
  const Result<Descriptor> lock = files.Lock();
  if (!lock && !(end.unkillable && lock.error().code() == Errc::kBusy)) {
    return std::unexpected(lock.error());
  }
  const spool::Identity identity{.assignment_id = spec.assignment_id(), .epoch = spec.epoch()};
  std::vector<v1::EventRecord> events;
  spool::SpoolReader reader(files.spool(), identity);
  for (;;) {
    Result<std::optional<spool::Record>> record = reader.Next();
    if (!record && record.error().code() == Errc::kCorrupt) {
      // Somebody else's files where ours should be: they are put aside, for whoever wants to know.
      std::error_code error;
      std::filesystem::rename(files.spool(), files.directory() / "spool.foreign", error);
      if (error)
        return std::unexpected(Error::FromErrno(error.value(), "rename", files.spool().string()));
      break;
    }
    if (!record) return std::unexpected(record.error());
    if (!*record) break;
    v1::EventRecord event;
    if (event.ParseFromString((*record)->payload)) events.push_back(std::move(event));
  }
  Result<spool::SpoolWriter> writer = spool::SpoolWriter::Resume(files.spool(), identity, {});
  if (!writer) {
    if (writer.error().code() == Errc::kAlreadyExists) return {};
    return std::unexpected(writer.error());
  }
  // The worker died between its result and the seal: that is the one result.
  if (!events.empty() && events.back().has_result()) return writer->Seal();
  v1::EventRecord last;
  last.set_seq(writer->next_seq());
  last.set_mono_ns(MonotonicClock().Now().time_since_epoch().count());
  *last.mutable_result() = ResultOfDeadTrial(spec, agent_id, host_name, end, clean_up, events);
  Result<void> added = writer->Append(spool::RecordType::kResult, spool::Durability::kNow,
                                      last.mono_ns(), last.SerializeAsString());
  return added ? writer->Seal() : added;
}

}  // namespace labrack::session
