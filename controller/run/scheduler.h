// All runs that have not ended: which trial is under way, who waits for whose hosts, when a run is
// over. Pure (effects.h): the loop hands in what it hears and the time, commits the changes, and
// then sends the commands.
//
//   PENDING --hosts are free--> RUNNING --all trials ended, verdict--> DONE, or FAILED (exit 5, 9)
//      |                           |
//      +------- Cancel ------------+--> CANCELLING --all trials ended--> CANCELLED (exit 7)
//
// Trials of a run go in the order of the plan, one at a time, each on all hosts of its cell. Runs
// that share a host are queued in the order in which they were submitted. An agent that was silent
// for `lost_after` is lost for the run: later trials that need it end as lost without waiting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/catalog/reader.h"
#include "controller/run/effects.h"
#include "controller/run/reports.h"
#include "controller/run/trial.h"

namespace labrack::run {

class Scheduler {
 public:
  static constexpr std::size_t kClosingPerAgentMax = 64;

  // `agents` outlives the scheduler.
  Scheduler(Options options, const AgentDirectory& agents, std::uint64_t controller_epoch);

  // A run that was under way when the controller ended, as the catalog has it. Oldest first.
  void Restore(catalog::StoredRun run, Moment now);
  // `run` is new; its rows are among the changes. Nothing is sent before Advance().
  void Submit(catalog::RunRow run, Moment now, Effects& effects);
  // False when the run is not under way.
  bool Cancel(const std::string& run_id, const std::string& who, const std::string& reason,
              Moment now, Effects& effects);
  // How many watch a run; a run with a lease is cancelled when nobody has for so long.
  void SetWatchers(const std::string& run_id, std::size_t count, Moment now);
  // The verdict on a run of Effects.ended_runs: the run ends, in the same commit.
  void SetVerdict(const std::string& run_id, const std::string& verdict, std::int32_t exit_code,
                  Moment now, Effects& effects);

  // An agent has connected. Answers for the assignments it holds that are under way; the others
  // are `strangers`, which the catalog must be asked about (DesiredOfStranger).
  struct Diff {
    std::vector<Trial::Desired> desired;
    std::vector<std::string> desired_ids;
    std::vector<v1::HeldAssignment> strangers;
  };
  Diff OnHello(const std::string& agent_id, const v1::Hello& hello, Moment now, Effects& effects);
  // What the catalog has of a stranger. To be called for each before its events come.
  void KnowStored(const std::string& agent_id, const v1::HeldAssignment& held,
                  std::uint64_t through_seq);
  void OnCommandAck(const std::string& agent_id, const v1::CommandAck& ack, Effects& effects);
  void OnGateReady(const std::string& agent_id, const v1::GateReady& ready, Moment now);
  // Stores, and answers with EventAck and, once the result is here, Want CLOSED. What is not stored
  // (records behind a gap) is not acknowledged.
  void OnEvents(const std::string& agent_id, const v1::Events& events, Moment now,
                Effects& effects);

  // Starts, ends, repeats and gives up whatever is due. Call it after every batch of inputs.
  void Advance(Moment now, Effects& effects);
  // When to call Advance() though nothing was heard; Advance() is wanted each second anyway.
  std::optional<TimePoint> wake() const;

  // Tokens below this controller epoch are not given out any more.
  void RaiseEpoch(std::uint64_t controller_epoch) { epochs_.Raise(controller_epoch); }

  bool Has(const std::string& run_id) const { return runs_.contains(run_id); }
  std::optional<v1::RunSummary> Summary(const std::string& run_id, Moment now) const;
  std::vector<v1::TrialSummary> Trials(const std::string& run_id,
                                       const std::set<std::uint32_t>* only) const;
  std::vector<std::string> HostsOf(const std::string& run_id) const;  // agent ids, in order
  // "r-7f3a trial 3", or empty: what an agent is working on.
  std::string WorkOf(const std::string& agent_id) const;
  const std::vector<std::string>& run_ids() const { return order_; }  // as they were submitted

 private:
  struct Run {
    catalog::RunRow row;
    std::vector<catalog::TrialRow> trials;
    std::set<std::string> hosts;
    std::set<std::string> lost_agents;
    std::unique_ptr<Trial> current;
    std::size_t next_trial = 0;  // index of the first trial that has not begun
    std::size_t watchers = 0;
    TimePoint last_watched{};
    TimePoint started{};
    std::uint32_t ended_here = 0;  // trials ended since `started`, for the estimate
    bool verdict_wanted = false;
  };

  Run* Find(const std::string& run_id);
  Run* RunOfAssignment(const std::string& assignment_id);
  Trial::World world() { return {.agents = agents_, .epochs = &epochs_, .options = &options_}; }
  void SaveRun(const Run& run, Effects& effects);
  void AdvanceRun(Run& run, Moment now, Effects& effects);
  void StartNextTrial(Run& run, Moment now, Effects& effects);
  bool BeginAnew(Run& run, Moment now, Effects& effects);
  void EndTrial(Run& run, const catalog::TrialRow& row, Effects& effects);
  std::optional<std::string> LostHostOf(const Run& run, const catalog::TrialRow& trial) const;
  void CheckLease(Run& run, Moment now, Effects& effects);
  void Close(const std::string& agent_id, const v1::Events& events, Moment now, Effects& effects);
  void RepeatCloses(Moment now, Effects& effects);
  static std::int64_t Estimate(const Run& run, Moment now);

  Options options_;
  const AgentDirectory* agents_;
  EpochSource epochs_;
  std::map<std::string, std::unique_ptr<Run>> runs_;
  std::vector<std::string> order_;  // ids of runs_, as they were submitted
  Reports reports_;
  // Closed assignments whose agent has not answered yet, by agent: when to repeat Want CLOSED.
  std::map<std::string, std::map<ReportKey, TimePoint>> closing_;
};

// What an agent should do with an assignment that is not under way, or with an earlier attempt at
// one that is. `known`: the catalog has a row of it. `result_stored`: its result under that token
// is durable here; nothing is ever ordered deleted before that.
v1::WantKind DesiredOfStranger(bool known, bool result_stored, const v1::HeldAssignment& held);

}  // namespace labrack::run
