#include "controller/plan/fleet_facts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "controller/plan/estimate.h"
#include "controller/plan/fio_job.h"
#include "controller/plan/names.h"
#include "controller/plan/problem.h"
#include "controller/plan/stack_facts.h"
#include "storage/base/units.h"

namespace labrack::plan {
namespace {

// Stays free beside the disks of a trial: spool, undo log, the file system's own blocks.
constexpr Bytes kHeadroom = 32_MiB;

std::string KindText(v1::DiskKind kind) { return kind == v1::DISK_KIND_RAM ? "ram" : "file"; }

// Why a host does not have the labels asked for; empty when it has them.
std::string LabelMismatch(const v1::Playbook& playbook, const v1::Inventory& host) {
  // A std::map, since the order of a protobuf map is not defined.
  const std::map<std::string, std::string> wanted(playbook.hosts().match().begin(),
                                                  playbook.hosts().match().end());
  for (const auto& [name, value] : wanted) {
    const auto label = host.labels().find(name);
    if (label == host.labels().end()) return "has no label `" + name + "`";
    if (label->second != value) return "has the label `" + name + ": " + label->second + "`";
  }
  return {};
}

std::string WantedLabels(const v1::Playbook& playbook) {
  const std::map<std::string, std::string> wanted(playbook.hosts().match().begin(),
                                                  playbook.hosts().match().end());
  std::string text;
  for (const auto& [name, value] : wanted) text += (text.empty() ? "" : ", ") + name + ": " + value;
  return text;
}

bool DirectoryAllowed(const v1::Inventory& host, const std::string& path) {
  if (path.empty()) return true;
  return std::ranges::any_of(host.directories(), [&](std::string allowed) {
    while (allowed.size() > 1 && allowed.ends_with('/')) allowed.pop_back();
    return path == allowed || path.starts_with(allowed == "/" ? allowed : allowed + "/");
  });
}

const v1::StackSupport* SupportOf(const v1::Inventory& host, const std::string& kind) {
  for (const v1::StackSupport& support : host.stack_support()) {
    if (support.kind() == kind) return &support;
  }
  return nullptr;
}

std::string WhyNoModel(const v1::Disks& disks, const v1::Inventory& host) {
  std::vector<std::string> known;
  for (const v1::ModelledDisk& model : host.modelled_disks()) {
    known.push_back(model.name());
    if (model.name() != disks.model()) continue;
    return disks.size() <= model.size_bytes()
               ? ""
               : "`" + disks.model() + "` has " + FormatBytesExact(Bytes(model.size_bytes())) +
                     ", and `disks: {size}` is " + FormatBytesExact(Bytes(disks.size()));
  }
  const std::string near = config::Nearest(disks.model(), known);
  return "its agent has no model `" + disks.model() + "`" +
         (near.empty() ? "; `labrack disk models` lists those that there are"
                       : "; did you mean `" + near + "`?");
}

// Why the host cannot build the stack of the cell; empty when it can. Disks that are refused by
// disk safety are no reason: those are never worked around (FleetCheck::CheckSafety).
std::string WhyUnsupported(const ExpandedCell& cell, const v1::Inventory& host) {
  const std::string kind = SupportKind(cell.stack);
  const v1::StackSupport* support = SupportOf(host, kind);
  if (support != nullptr && !support->supported()) return support->reason();
  if (cell.stack.host().has_dir()) {
    const std::string& path = cell.stack.host().dir().path();
    return DirectoryAllowed(host, path) ? ""
                                        : "`" + path + "` is not among the agent's `directories`";
  }
  if (support == nullptr) return "its agent does not know `" + kind + "` stacks";
  if (IsModelled(cell.disks)) return WhyNoModel(cell.disks, host);
  if (UsesLoopDevices(cell.stack) && !host.loop_devices())
    return "disks cannot become loop devices here (the agent is not root)";
  const v1::DiskKind disks = cell.disks.kind();
  const bool named = std::ranges::any_of(host.disks(), [&](const v1::LentDisk& disk) {
    return disk.kind() == KindText(disks) || !disk.refused().empty();
  });
  return named ? "" : "the host lends no " + KindText(disks) + " disks";
}

bool TakesLentDisks(const ExpandedCell& cell, const CellOnHost& decision) {
  return decision.how == CellOnHost::How::kBuild && UsesLentDisks(cell.stack, cell.disks);
}

// A directory of the agent's own takes its space from the same place as file disks.
bool UsesAgentDirectory(const ExpandedCell& cell, const CellOnHost& decision) {
  return decision.how == CellOnHost::How::kStandIn ||
         (decision.how == CellOnHost::How::kBuild && cell.stack.host().has_dir() &&
          cell.stack.host().dir().path().empty());
}

}  // namespace

std::vector<const FleetHost*> ChooseHosts(const LoadedPlaybook& playbook, const FleetView& fleet,
                                          config::Problems& problems) {
  std::vector<const FleetHost*> all;
  for (const FleetHost& host : fleet) all.push_back(&host);
  std::ranges::sort(all, {}, &FleetHost::agent_id);

  std::vector<const FleetHost*> chosen;
  std::vector<std::string> notes;
  for (const FleetHost* host : all) {
    const std::string mismatch = LabelMismatch(playbook.playbook, host->inventory);
    if (!mismatch.empty()) {
      notes.push_back(host->agent_id + " does not match: it " + mismatch);
    } else if (!host->online) {
      notes.push_back(host->agent_id + " matches but is not online");
    } else {
      chosen.push_back(host);
    }
  }
  const v1::Hosts& wanted = playbook.playbook.hosts();
  const std::size_t min = std::max<std::size_t>(1, wanted.min());
  if (chosen.size() < min) {
    const std::string labels = WantedLabels(playbook.playbook);
    const std::string found =
        Count(chosen.size(), "attached host") +
        (labels.empty() ? (chosen.size() == 1 ? " is" : " are") + std::string(" online")
                        : (chosen.size() == 1 ? " matches `" : " match `") + labels + "`");
    std::vector<std::string> helps{"attach more hosts (`labrack host ls` shows those that are)"};
    if (!chosen.empty()) helps[0] += ", or set `hosts.min: " + std::to_string(chosen.size()) + "`";
    problems.Add(At(playbook.Find(wanted.min() > 1 ? "hosts.min" : "hosts.match"),
                    {"LR401", found + ", the playbook asks for " + std::to_string(min), "",
                     std::move(notes), std::move(helps)}));
    return {};
  }
  if (wanted.max() > 0 && chosen.size() > wanted.max()) chosen.resize(wanted.max());
  return chosen;
}

CellOnHost Decide(const ExpandedCell& cell, const v1::Inventory& host) {
  std::string reason = WhyUnsupported(cell, host);
  if (reason.empty()) return {};
  // A directory has real time, and lies on a real disk.
  const bool stands_in = cell.stack.if_unsupported() == v1::IF_UNSUPPORTED_DIRECTORY;
  if (stands_in && IsModelled(cell.disks)) return {CellOnHost::How::kRefuse, std::move(reason)};
  switch (cell.stack.if_unsupported()) {
    case v1::IF_UNSUPPORTED_SKIP:
      return {CellOnHost::How::kSkip, std::move(reason)};
    case v1::IF_UNSUPPORTED_DIRECTORY:
      return {CellOnHost::How::kStandIn, std::move(reason)};
    default:
      return {CellOnHost::How::kRefuse, std::move(reason)};
  }
}

const v1::LentDisk* LentSpace(const v1::Inventory& host, v1::DiskKind kind) {
  const v1::LentDisk* best = nullptr;
  for (const v1::LentDisk& disk : host.disks()) {
    if (disk.kind() != KindText(kind) || !disk.refused().empty()) continue;
    if (best == nullptr || disk.free_bytes() > best->free_bytes()) best = &disk;
  }
  return best;
}

void FleetCheck::Run(PlanRefusal& refusal) {
  CheckClean(refusal);
  CheckStacks(refusal);
  CheckCommands(refusal);
  CheckSafety(refusal);
  CheckSpace(refusal);
  CheckGates(refusal);
}

// Its agent would refuse every trial.
void FleetCheck::CheckClean(PlanRefusal& refusal) {
  std::vector<std::string> notes;
  for (const FleetHost* host : hosts_) {
    if (!host->dirty.empty()) notes.push_back(host->agent_id + ": " + host->dirty);
  }
  if (notes.empty()) return;
  const std::string count = Count(notes.size(), "host");
  refusal.problems.Add(
      At(playbook_.Find("hosts.match"),
         {"LR411",
          count + (notes.size() == 1 ? " still holds" : " still hold") +
              " what an earlier trial has left, and takes no other",
          "",
          std::move(notes),
          {"end there what holds it (the notes name it); the agent goes on trying, and takes "
           "trials as soon as the host is clean",
           "or leave such hosts out with `hosts.match`"}}));
}

void FleetCheck::CheckStacks(PlanRefusal& refusal) {
  // Once a stack, however many cells it has.
  std::map<std::string, std::set<std::string>> notes;
  for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
    for (std::size_t j = 0; j < hosts_.size(); ++j) {
      if (decisions_[i][j].how != CellOnHost::How::kRefuse) continue;
      notes[playbook_.cells[i].stack.name()].insert(hosts_[j]->agent_id + ": " +
                                                    decisions_[i][j].reason);
    }
  }
  for (const v1::Stack& stack : playbook_.playbook.stacks()) {
    const auto found = notes.find(stack.name());
    if (found == notes.end()) continue;
    const bool directory = stack.host().has_dir();
    const std::string path = "stacks." + stack.name();
    refusal.problems.Add(At(
        directory ? playbook_.Find(path + ".host.dir.path") : playbook_.FindKey(path),
        {directory ? "LR405" : "LR402",
         "stack `" + stack.name() + "` cannot be built on " + Count(found->second.size(), "host"),
         "",
         {found->second.begin(), found->second.end()},
         {directory ? "allow it with `directories` in the agent's configuration, or leave `path` "
                      "out"
                    : "set `if_unsupported: skip` to leave it out there, or `if_unsupported: "
                      "directory` to let a plain directory stand in"}}));
  }
}

void FleetCheck::CheckCommands(PlanRefusal& refusal) {
  std::vector<std::string> notes;
  for (const FleetHost* host : hosts_) {
    if (!host->inventory.allow_exec()) notes.push_back(host->agent_id + " does not allow commands");
  }
  if (notes.empty()) return;
  std::set<std::string> said;
  for (const ExpandedCell& cell : playbook_.cells) {
    const v1::Workload& workload = cell.workload;
    std::string what;
    std::string path = "workloads." + workload.name();
    if (workload.has_exec()) {
      what = "workload `" + workload.name() + "` runs a command";
      path += ".exec.command";
    } else if (workload.has_fio()) {
      const FioJobFile file = ParseFioJob(workload.fio().job());
      if (!file.commands.empty()) what = file.commands.front().message;
      path += workload.fio().job_file().empty() ? ".fio.job" : ".fio.job_file";
    }
    if (what.empty() || !said.insert(workload.name() + "\n" + what).second) continue;
    refusal.problems.Add(At(playbook_.Find(path),
                            {"LR404",
                             what + ", which " + Count(notes.size(), "host") + " refuse" +
                                 (notes.size() == 1 ? "s" : ""),
                             "",
                             notes,
                             {"where whoever writes playbooks may run commands: `labrack run "
                              "--allow-exec` for agents that it starts itself, `allow_exec: true` "
                              "in the configuration of others"}}));
  }
}

// A host whose disks are all refused is never worked around by a directory.
void FleetCheck::CheckSafety(PlanRefusal& refusal) {
  std::set<std::string> notes;
  for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
    const ExpandedCell& cell = playbook_.cells[i];
    for (std::size_t j = 0; j < hosts_.size(); ++j) {
      if (!TakesLentDisks(cell, decisions_[i][j])) continue;
      const v1::Inventory& host = hosts_[j]->inventory;
      if (LentSpace(host, cell.disks.kind()) != nullptr) continue;
      for (const v1::LentDisk& disk : host.disks()) {
        if (disk.refused().empty()) continue;
        notes.insert(hosts_[j]->agent_id + ": " + disk.id() + ": " + disk.refused());
      }
    }
  }
  if (notes.empty()) return;
  refusal.safety = true;
  refusal.problems.Add(At(playbook_.Find("disks"),
                          {"LR406",
                           "the disks of hosts that the playbook needs are refused by disk safety",
                           "",
                           {notes.begin(), notes.end()},
                           {"lend other disks in the agent's configuration; no playbook can "
                            "override this"}}));
}

Bytes FleetCheck::SpaceNeeded(std::size_t index, v1::DiskKind kind) const {
  Bytes most;
  for (std::size_t i = 0; i < playbook_.cells.size(); ++i) {
    const ExpandedCell& cell = playbook_.cells[i];
    const CellOnHost& decision = decisions_[i][index];
    if (TakesLentDisks(cell, decision) && cell.disks.kind() == kind) {
      most = std::max(most, Bytes(cell.disks.size()) * DisksUsed(cell.stack, cell.disks));
    } else if (kind == v1::DISK_KIND_FILE && UsesAgentDirectory(cell, decision)) {
      most = std::max(most, EstimateWork(cell.workload).footprint);
    }
  }
  return most == Bytes(0) ? most : most + kHeadroom;
}

void FleetCheck::CheckSpace(PlanRefusal& refusal) {
  for (const v1::DiskKind kind : {v1::DISK_KIND_FILE, v1::DISK_KIND_RAM}) {
    // Agents of one machine make their disks from the same space at the same time.
    using Space = std::tuple<std::string, std::string>;
    std::map<Space, Bytes> needed_together;
    const auto space_of = [&](const FleetHost& host, const v1::LentDisk& lent) {
      const std::string& machine = host.inventory.machine_id();
      return Space(machine.empty() ? host.agent_id : machine, lent.backing());
    };
    for (std::size_t j = 0; j < hosts_.size(); ++j) {
      const v1::LentDisk* lent = LentSpace(hosts_[j]->inventory, kind);
      if (lent != nullptr) needed_together[space_of(*hosts_[j], *lent)] += SpaceNeeded(j, kind);
    }
    std::vector<std::string> notes;
    for (std::size_t j = 0; j < hosts_.size(); ++j) {
      const v1::LentDisk* lent = LentSpace(hosts_[j]->inventory, kind);
      if (lent == nullptr) continue;
      const Bytes needed = SpaceNeeded(j, kind);
      const Bytes together = needed_together[space_of(*hosts_[j], *lent)];
      if (needed <= Bytes(lent->capacity_bytes()) && together <= Bytes(lent->free_bytes()))
        continue;
      const Bytes lends = std::min(Bytes(lent->capacity_bytes()), Bytes(lent->free_bytes()));
      notes.push_back(hosts_[j]->agent_id + " lends " + FormatBytes(lends) + " on " +
                      lent->backing() +
                      (together > needed
                           ? "; agents of this machine need " + FormatBytes(together) + " together"
                           : ", a trial needs " + FormatBytes(needed)));
    }
    if (notes.empty()) continue;
    refusal.problems.Add(At(playbook_.Find("disks.size"),
                            {"LR403",
                             Count(notes.size(), "host") + " cannot make room for the " +
                                 KindText(kind) + " disks of a trial",
                             "",
                             std::move(notes),
                             {"ask for fewer or smaller disks, or make room there"}}));
  }
}

void FleetCheck::CheckGates(PlanRefusal& refusal) {
  for (int i = 0; i < playbook_.playbook.gates_size(); ++i) {
    const std::string& name = playbook_.playbook.gates(i).host();
    if (name.empty()) continue;
    std::vector<std::string> known;
    for (const FleetHost* host : hosts_) known.push_back(host->agent_id);
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string near = config::Nearest(name, known);
    refusal.problems.Add(At(playbook_.Find("gates[" + std::to_string(i) + "].host"),
                            {"LR409",
                             "host `" + name + "` does not take part",
                             "",
                             {"hosts of this plan: " + Listed(known)},
                             {near.empty() ? "name one of them, or leave `host` out"
                                           : "did you mean `" + near + "`?"}}));
  }
}

}  // namespace labrack::plan
