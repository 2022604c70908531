#include "controller/plan/planner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "controller/plan/estimate.h"
#include "controller/plan/fleet_facts.h"
#include "controller/plan/names.h"
#include "controller/plan/problem.h"
#include "controller/plan/stack_facts.h"
#include "proto/convert/names.h"
#include "storage/base/check.h"
#include "storage/base/units.h"

namespace labrack::plan {
namespace {

// A plan is kept in memory and sent whole.
constexpr std::size_t kTrialsMax = 100'000;
// From the order to the common start of several hosts (config.proto, start_lead).
constexpr Nanoseconds kStartLead = std::chrono::milliseconds(200);

using How = CellOnHost::How;

std::uint64_t SaturatingAdd(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}
std::uint64_t SaturatingMultiply(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b
             ? std::numeric_limits<std::uint64_t>::max()
             : a * b;
}

std::string ParametersText(const ExpandedCell& cell) {
  std::string text;
  for (const auto& [name, value] : cell.parameters) {
    text += (text.empty() ? "" : " ") + name + "=" + value;
  }
  return text;
}

// Cells with the same data and load, on different stacks: they are run side by side, and have the
// same seed within a repeat.
std::string GroupKey(const ExpandedCell& cell) {
  return cell.workload.name() + " " + cell.conditions;
}

class Planner {
 public:
  Planner(const LoadedPlaybook& playbook, const FleetView& fleet, Seed seed)
      : playbook_(playbook), fleet_(fleet), seed_(seed) {}

  std::expected<v1::Plan, PlanRefusal> Run() {
    PlanRefusal refusal;
    hosts_ = ChooseHosts(playbook_, fleet_, refusal.problems);
    if (!refusal.problems.empty()) return std::unexpected(std::move(refusal));
    for (const ExpandedCell& cell : playbook_.cells) {
      std::vector<CellOnHost>& row = decisions_.emplace_back();
      for (const FleetHost* host : hosts_) row.push_back(Decide(cell, host->inventory));
    }
    FleetCheck(playbook_, hosts_, decisions_).Run(refusal);
    AddHead();
    AddCells();
    CheckTrialCount(refusal.problems);
    CheckBase(refusal.problems);
    if (!refusal.problems.empty()) return std::unexpected(std::move(refusal));
    AddTrials();
    AddTotals();
    AddNotes();
    return std::move(plan_);
  }

 private:
  void AddHead() {
    plan_.set_playbook_name(playbook_.playbook.playbook());
    plan_.set_playbook_sha256(playbook_.sha256);
    plan_.set_seed(seed_.value);
    *plan_.mutable_playbook() = playbook_.playbook;
  }

  void AddCells() {
    for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
      const ExpandedCell& from = playbook_.cells[i];
      v1::PlannedCell cell;
      for (std::size_t j = 0; j < hosts_.size(); ++j) {
        const CellOnHost& decision = decisions_[i][j];
        if (decision.how == How::kSkip || decision.how == How::kRefuse) continue;
        cell.add_agent_ids(hosts_[j]->agent_id);
        if (decision.how == How::kStandIn) {
          (*cell.mutable_stand_ins())[hosts_[j]->agent_id] = decision.reason;
        }
      }
      if (cell.agent_ids_size() == 0) continue;  // skipped everywhere; AddNotes says so
      cell.set_index(static_cast<std::uint32_t>(plan_.cells_size()));
      *cell.mutable_stack() = from.stack;
      *cell.mutable_workload() = from.workload;
      *cell.mutable_disks() = from.disks;
      for (const auto& [name, value] : from.parameters) (*cell.mutable_parameters())[name] = value;
      cell.set_parameters_text(ParametersText(from));
      *plan_.add_cells() = std::move(cell);
      planned_.push_back(i);
    }
  }

  void CheckTrialCount(config::Problems& problems) {
    // Where stacks are refused, an empty plan is no second mistake.
    if (plan_.cells_size() == 0 && problems.empty()) {
      problems.Add(
          At(playbook_.FindKey("stacks"),
             {"LR407",
              "every stack is skipped on every host; nothing would run",
              "",
              SkipNotes(),
              {"use a stack that these hosts can build; `labrack host show` lists them"}}));
    }
    const std::uint64_t trials =
        static_cast<std::uint64_t>(plan_.cells_size()) * playbook_.playbook.trials();
    if (trials > kTrialsMax) {
      problems.Add(At(playbook_.Find("trials"),
                      {"LR408",
                       std::to_string(trials) + " trials are more than a run may have (" +
                           std::to_string(kTrialsMax) + ")",
                       "",
                       {Count(static_cast<std::size_t>(plan_.cells_size()), "cell") + " with " +
                        Count(playbook_.playbook.trials(), "trial") + " each"},
                       {"ask for fewer trials, or split the playbook"}}));
    }
  }

  // Without its base a run compares nothing, and would pass all the same.
  void CheckBase(config::Problems& problems) {
    const std::string& base = playbook_.playbook.base();
    if (base.empty() || !problems.empty() || plan_.cells_size() == 0) return;
    const auto has_base = [&](const v1::PlannedCell& cell) { return cell.stack().name() == base; };
    if (std::ranges::any_of(plan_.cells(), has_base)) return;
    std::vector<std::string> notes;
    for (std::string& note : SkipNotes()) {
      if (note.starts_with(base + " ")) notes.push_back(std::move(note));
    }
    if (notes.empty()) notes.push_back("`include` or `exclude` leave it out");
    problems.Add(At(playbook_.Find("base"),
                    {"LR410",
                     "the base `" + base + "` would be run nowhere, so nothing could be compared",
                     "",
                     std::move(notes),
                     {"name another base, or leave `base` out for the first stack that is run"}}));
  }

  // Cells by group, both in the order written.
  std::vector<std::vector<std::uint32_t>> Groups() const {
    std::vector<std::vector<std::uint32_t>> groups;
    std::map<std::string, std::size_t> index_of;
    for (std::uint32_t cell = 0; cell < planned_.size(); ++cell) {
      const auto [at, is_new] =
          index_of.try_emplace(GroupKey(playbook_.cells[planned_[cell]]), groups.size());
      if (is_new) groups.emplace_back();
      groups[at->second].push_back(cell);
    }
    return groups;
  }

  // The order of cells in one repeat (planner.h has the picture).
  static std::vector<std::uint32_t> OrderOf(const std::vector<std::vector<std::uint32_t>>& groups,
                                            std::uint32_t repeat, Seed seed) {
    const std::uint32_t pair = repeat / 2;
    const std::size_t first_group =
        pair == 0 ? 0 : Random(Derive(Derive(seed, "order"), pair)).Below(groups.size());
    std::vector<std::uint32_t> order;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::vector<std::uint32_t>& group = groups[(first_group + g) % groups.size()];
      for (std::size_t s = 0; s < group.size(); ++s) {
        order.push_back(group[(pair + s) % group.size()]);
      }
    }
    if (repeat % 2 == 1) std::ranges::reverse(order);
    return order;
  }

  void AddTrials() {
    const std::vector<std::vector<std::uint32_t>> groups = Groups();
    for (std::uint32_t repeat = 0; repeat < playbook_.playbook.trials(); ++repeat) {
      for (std::uint32_t cell : OrderOf(groups, repeat, seed_)) {
        v1::PlannedTrial& trial = *plan_.add_trials();
        trial.set_index(static_cast<std::uint32_t>(plan_.trials_size() - 1));
        trial.set_cell(cell);
        trial.set_repeat(repeat);
        const Seed group = Derive(Derive(seed_, "data"), GroupKey(playbook_.cells[planned_[cell]]));
        trial.set_seed(Derive(group, repeat).value);
      }
    }
  }

  void AddTotals() {
    std::vector<std::uint64_t> host_bytes(hosts_.size(), 0);
    std::uint64_t duration = 0;
    const std::uint64_t trials = playbook_.playbook.trials();
    for (const v1::PlannedCell& cell : plan_.cells()) {
      const ExpandedCell& from = playbook_.cells[planned_[cell.index()]];
      const WorkEstimate work = EstimateWork(from.workload);
      Nanoseconds each = EstimateStack(from.stack, from.disks) +
                         (IsModelled(from.disks) ? OnModels(work.duration) : work.duration);
      if (cell.agent_ids_size() > 1) {
        each += kStartLead * static_cast<std::int64_t>(StepNames(from.workload).size());
      }
      duration = SaturatingAdd(
          duration, SaturatingMultiply(static_cast<std::uint64_t>(each.count()), trials));
      for (std::size_t j = 0; j < hosts_.size(); ++j) {
        const How how = decisions_[planned_[cell.index()]][j].how;
        if (how != How::kBuild && how != How::kStandIn) continue;
        if (how == How::kBuild && IsModelled(from.disks)) continue;
        const bool stands_in = how == How::kStandIn;
        const double factor = stands_in ? 1 : WriteFactor(from.stack, from.disks);
        auto bytes = static_cast<std::uint64_t>(static_cast<double>(work.written.count()) * factor);
        if (!stands_in) {
          bytes = SaturatingAdd(bytes, EstimatePreparation(from.stack, from.disks).count());
        }
        host_bytes[j] = SaturatingAdd(host_bytes[j], SaturatingMultiply(bytes, trials));
      }
    }
    constexpr std::uint64_t kDurationMax = std::numeric_limits<std::int64_t>::max();
    plan_.set_duration_ns(static_cast<std::int64_t>(std::min(duration, kDurationMax)));
    for (std::size_t j = 0; j < hosts_.size(); ++j) AddHost(j, host_bytes[j]);
  }

  void AddHost(std::size_t j, std::uint64_t write_bytes) {
    v1::PlannedHost& host = *plan_.add_hosts();
    host.set_agent_id(hosts_[j]->agent_id);
    host.set_host_name(NameOf(j));
    host.set_write_bytes(write_bytes);
    plan_.set_write_bytes(SaturatingAdd(plan_.write_bytes(), write_bytes));
    std::set<std::string> seen;
    for (std::size_t i : planned_) {
      for (std::string& line :
           DiskLines(playbook_.cells[i], decisions_[i][j], hosts_[j]->inventory)) {
        if (seen.insert(line).second) host.add_disks(std::move(line));
      }
    }
  }

  // Reports tell hosts apart by name. Several agents of one machine share its name, so there each
  // is called by its id.
  std::string NameOf(std::size_t j) const {
    const std::string& name = hosts_[j]->inventory.host_name();
    const auto shares = [&](const auto* host) { return host->inventory.host_name() == name; };
    return std::ranges::count_if(hosts_, shares) > 1 ? hosts_[j]->agent_id : name;
  }

  // What a trial of the cell uses on the host, a line each.
  static std::vector<std::string> DiskLines(const ExpandedCell& cell, const CellOnHost& decision,
                                            const v1::Inventory& host) {
    if (decision.how == How::kSkip || decision.how == How::kRefuse) return {};
    const v1::DiskKind kind = decision.how == How::kStandIn || !UsesDisks(cell.stack)
                                  ? v1::DISK_KIND_FILE
                                  : cell.disks.kind();
    const v1::LentDisk* lent = LentSpace(host, kind);
    const std::string backing = lent == nullptr ? "" : ", on " + lent->backing();
    if (decision.how == How::kStandIn) return {"a directory of the agent's own" + backing};
    if (cell.stack.host().has_dir()) {
      const std::string& path = cell.stack.host().dir().path();
      return {path.empty() ? "a directory of the agent's own" + backing
                           : "a new directory in " + path};
    }
    if (IsModelled(cell.disks)) {
      return {Count(DisksUsed(cell.stack, cell.disks), "modelled disk") + " `" +
              cell.disks.model() + "` of " + FormatBytes(Bytes(cell.disks.size())) +
              ", in virtual time"};
    }
    std::vector<std::string> lines;
    for (std::uint32_t i = 0; i < DisksUsed(cell.stack, cell.disks); ++i) {
      lines.push_back((lent == nullptr ? "" : lent->id()) + "/<trial>/disk-" + std::to_string(i) +
                      ", " + FormatBytes(Bytes(cell.disks.size())) + backing);
    }
    return lines;
  }

  // The same skips as data: by stack, host and reason; with their cells when others of the stack
  // run.
  void AddSkips() {
    std::map<std::pair<std::string, std::size_t>, bool> runs;
    for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
      for (std::size_t j = 0; j < hosts_.size(); ++j) {
        runs[{playbook_.cells[i].stack.name(), j}] |= decisions_[i][j].how != How::kSkip;
      }
    }
    std::map<std::tuple<std::string, std::size_t, std::string>, int> places;
    for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
      const ExpandedCell& cell = playbook_.cells[i];
      const std::string& stack = cell.stack.name();
      for (std::size_t j = 0; j < hosts_.size(); ++j) {
        const CellOnHost& decision = decisions_[i][j];
        if (decision.how != How::kSkip) continue;
        const auto [place, is_new] =
            places.try_emplace({stack, j, decision.reason}, plan_.skips_size());
        if (is_new) {
          v1::PlannedSkip& skip = *plan_.add_skips();
          skip.set_stack(stack);
          skip.set_agent_id(hosts_[j]->agent_id);
          skip.set_reason(decision.reason);
        }
        if (runs[{stack, j}]) plan_.mutable_skips(place->second)->add_cells(NameOfCell(cell));
      }
    }
  }

  static std::string NameOfCell(const ExpandedCell& from) {
    v1::PlannedCell cell;
    cell.mutable_stack()->set_name(from.stack.name());
    cell.mutable_workload()->set_name(from.workload.name());
    cell.set_parameters_text(ParametersText(from));
    return convert::CellName(cell);
  }

  std::vector<std::string> SkipNotes() const {
    std::vector<std::string> notes;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
      const std::string& stack = playbook_.cells[i].stack.name();
      for (std::size_t j = 0; j < hosts_.size(); ++j) {
        const CellOnHost& decision = decisions_[i][j];
        std::string note;
        if (decision.how == How::kSkip) {
          note = stack + " is skipped on " + hosts_[j]->agent_id + ": " + decision.reason;
        } else if (decision.how == How::kStandIn) {
          note = "a directory stands in for " + stack + " on " + hosts_[j]->agent_id + ": " +
                 decision.reason;
        }
        if (!note.empty() && seen.insert(note).second) notes.push_back(std::move(note));
      }
    }
    return notes;
  }

  void AddNotes() {
    for (std::string& note : SkipNotes()) plan_.add_notes(std::move(note));
    AddSkips();
    if (playbook_.playbook.trials() < 4) {
      plan_.add_notes("fewer than 4 trials: every verdict will be INCONCLUSIVE");
    }
    std::set<std::string> unknown;
    for (const v1::PlannedCell& cell : plan_.cells()) {
      const v1::Workload& workload = cell.workload();
      if (EstimateWork(workload).writes_known || !unknown.insert(workload.name()).second) continue;
      plan_.add_notes("what the command of " + workload.name() +
                      " writes is not known, and not counted");
    }
  }

  const LoadedPlaybook& playbook_;
  const FleetView& fleet_;
  const Seed seed_;
  std::vector<const FleetHost*> hosts_;
  std::vector<std::vector<CellOnHost>> decisions_;  // by cell of the playbook, then host
  std::vector<std::size_t> planned_;                // planned cell -> cell of the playbook
  v1::Plan plan_;
};

}  // namespace

std::expected<v1::Plan, PlanRefusal> MakePlan(const LoadedPlaybook& playbook,
                                              const FleetView& fleet, Seed seed) {
  if (seed == Seed{0}) seed = Derive(Seed{0}, playbook.sha256);
  return Planner(playbook, fleet, seed).Run();
}

std::string AssignmentId(const std::string& run_id, std::uint32_t trial_index,
                         const std::string& agent_id) {
  return run_id + "/" + std::to_string(trial_index) + "/" + agent_id;
}

std::vector<v1::AssignmentSpec> MakeAssignments(const v1::Plan& plan, const v1::PlannedTrial& trial,
                                                const std::string& run_id) {
  LABRACK_CHECK(trial.cell() < static_cast<std::uint32_t>(plan.cells_size()));
  const v1::PlannedCell& cell = plan.cells(static_cast<int>(trial.cell()));
  std::vector<v1::AssignmentSpec> specs;
  for (const std::string& agent_id : cell.agent_ids()) {
    v1::AssignmentSpec& spec = specs.emplace_back();
    spec.set_assignment_id(AssignmentId(run_id, trial.index(), agent_id));
    spec.set_run_id(run_id);
    spec.set_trial_index(trial.index());
    *spec.mutable_stack() = cell.stack();
    *spec.mutable_workload() = cell.workload();
    *spec.mutable_disks() = cell.disks();
    spec.set_seed(trial.seed());
    *spec.mutable_timeouts() = plan.playbook().timeouts();
    spec.set_barrier(cell.agent_ids_size() > 1);
    const auto stand_in = cell.stand_ins().find(agent_id);
    if (stand_in != cell.stand_ins().end()) spec.set_stand_in(stand_in->second);
    spec.set_playbook_name(plan.playbook_name());
    spec.set_cell_name(convert::CellName(cell));
    spec.set_repeat(trial.repeat());
  }
  return specs;
}

}  // namespace labrack::plan
