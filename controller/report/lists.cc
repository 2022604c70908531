#include "controller/report/lists.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "controller/report/text_table.h"
#include "proto/convert/names.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

constexpr int kPlannedTrialsShownMax = 200;

using Align = TextTable::Align;

std::string Size(std::uint64_t bytes) { return FormatBytes(Bytes(bytes)); }

std::string Ago(std::int64_t ns) { return FormatDuration(Nanoseconds(ns)); }

std::string Code(const v1::RunSummary& run) {
  return run.exit_code() < 0 ? "-" : std::to_string(run.exit_code());
}

bool IsLeft(const v1::RunSummary& run, Unfinished unfinished) {
  return unfinished == Unfinished::kLeft &&
         (run.state() == v1::RUN_STATE_PENDING || run.state() == v1::RUN_STATE_RUNNING ||
          run.state() == v1::RUN_STATE_CANCELLING);
}

std::string StateWord(const v1::RunSummary& run, Unfinished unfinished) {
  return IsLeft(run, unfinished) ? "unfinished" : FormatRunState(run.state());
}

// Of a cancelled run, those that were never begun are over too, and not done.
std::string TrialsDone(const v1::RunSummary& run) {
  const bool cancelled = run.state() == v1::RUN_STATE_CANCELLED;
  return fmt::format("{}/{}", cancelled ? run.trials_valid() : run.trials_done(),
                     run.trials_total());
}

std::string Plural(std::size_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string MemoryOf(const v1::Inventory& host) {
  return host.memory_bytes() == 0 ? "-" : Size(host.memory_bytes());
}

std::string StacksOf(const v1::Inventory& host) {
  std::string stacks;
  for (const v1::StackSupport& support : host.stack_support()) {
    if (!support.supported()) continue;
    stacks += (stacks.empty() ? "" : " ") + support.kind();
  }
  return stacks;
}

std::string HostName(const v1::HostRecord& host) {
  return host.inventory().host_name().empty() ? host.agent_id() : host.inventory().host_name();
}

const v1::PlannedCell* CellOf(const v1::Plan& plan, std::uint32_t index) {
  for (const v1::PlannedCell& cell : plan.cells()) {
    if (cell.index() == index) return &cell;
  }
  return nullptr;
}

std::string PlanHead(const v1::Plan& plan) {
  std::string text =
      fmt::format("plan of {}   seed {}\n", Printable(plan.playbook_name()), plan.seed());
  if (!plan.playbook().summary().empty()) {
    text += Wrapped("", Printable(plan.playbook().summary()), kColumnsMax);
  }
  text += fmt::format("{}, {}, {}; {} will be written, about {}\n",
                      Plural(static_cast<std::size_t>(plan.hosts_size()), "host", "hosts"),
                      Plural(static_cast<std::size_t>(plan.cells_size()), "cell", "cells"),
                      Plural(static_cast<std::size_t>(plan.trials_size()), "trial", "trials"),
                      Size(plan.write_bytes()), FormatDuration(Nanoseconds(plan.duration_ns())));
  return text;
}

// The disks are never clipped: this is where one sees what will be written to.
std::string PlanHosts(const v1::Plan& plan) {
  std::string text = "\nDISKS that will be written to; nothing else is touched\n";
  for (const v1::PlannedHost& host : plan.hosts()) {
    text += fmt::format("  {} ({})   {} to be written\n", Printable(host.host_name()),
                        Printable(host.agent_id()), Size(host.write_bytes()));
    for (const std::string& disk : host.disks()) text += "    " + Printable(disk) + "\n";
    if (host.disks().empty()) text += "    no disk: directories only\n";
  }
  return text;
}

std::string PlanCells(const v1::Plan& plan) {
  TextTable table({{.title = "CELL"},
                   {.title = "HOSTS", .align = Align::kRight},
                   {.title = "TRIALS", .align = Align::kRight},
                   {.title = "NOTE"}});
  std::map<std::uint32_t, std::size_t> trials_of;
  for (const v1::PlannedTrial& trial : plan.trials()) ++trials_of[trial.cell()];
  for (const v1::PlannedCell& cell : plan.cells()) {
    std::string note;
    // Protobuf maps have no order of their own.
    const std::map<std::string, std::string> stand_ins(cell.stand_ins().begin(),
                                                       cell.stand_ins().end());
    for (const auto& [agent, reason] : stand_ins) {
      note += fmt::format("{}{}: {}", note.empty() ? "" : "; ", agent, reason);
    }
    table.AddRow({convert::CellName(cell), std::to_string(cell.agent_ids_size()),
                  std::to_string(trials_of[cell.index()]), note.empty() ? "-" : note});
  }
  return "\n" + table.Format(kColumnsMax);
}

std::string PlanTrials(const v1::Plan& plan) {
  std::string text = "\nORDER of the trials\n";
  std::string line;
  std::uint32_t repeat = 0;
  int shown = 0;
  const auto flush = [&] {
    if (!line.empty())
      text += Wrapped(fmt::format("  repeat {:<3} ", repeat + 1), line, kColumnsMax);
    line.clear();
  };
  for (const v1::PlannedTrial& trial : plan.trials()) {
    if (shown == kPlannedTrialsShownMax) break;
    if (trial.repeat() != repeat) flush();
    repeat = trial.repeat();
    const v1::PlannedCell* cell = CellOf(plan, trial.cell());
    line +=
        (line.empty() ? "" : ", ") + (cell == nullptr ? "?" : Printable(convert::CellName(*cell)));
    ++shown;
  }
  flush();
  if (shown < plan.trials_size()) {
    text += fmt::format("  and {} more; --json lists all\n", plan.trials_size() - shown);
  }
  return text;
}

void AddTrialRow(const v1::TrialRecord& trial, TextTable& table) {
  const v1::TrialSummary& summary = trial.summary();
  const bool together = summary.host_count() > 1 && summary.state() == "valid";
  table.AddRow(
      {std::to_string(summary.index() + 1), summary.cell_name(),
       std::to_string(summary.repeat() + 1),
       summary.attempt() > 1 ? fmt::format("{}, attempt {}", summary.state(), summary.attempt())
                             : summary.state(),
       together ? FormatDuration(Nanoseconds(summary.start_skew_ns())) : "-",
       together ? fmt::format("{:.1f} %", summary.overlap() * 100) : "-", summary.reason()});
}

}  // namespace

std::string FormatWallTime(std::int64_t wall_ns) {
  if (wall_ns <= 0) return "-";
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string FormatRunState(v1::RunState state) {
  switch (state) {
    case v1::RUN_STATE_PENDING:
      return "pending";
    case v1::RUN_STATE_RUNNING:
      return "running";
    case v1::RUN_STATE_CANCELLING:
      return "cancelling";
    case v1::RUN_STATE_DONE:
      return "done";
    case v1::RUN_STATE_CANCELLED:
      return "cancelled";
    case v1::RUN_STATE_FAILED:
      return "failed";
    default:
      return "-";
  }
}

std::string FormatRuns(const v1::ListRunsReply& runs, Unfinished unfinished) {
  if (runs.runs().empty()) return "no runs yet; start one with `labrack run PLAYBOOK`\n";
  TextTable table({{.title = "RUN", .whole = true},
                   {.title = "PLAYBOOK"},
                   {.title = "STATE", .whole = true},
                   {.title = "TRIALS", .align = Align::kRight},
                   {.title = "VERDICT", .whole = true},
                   {.title = "EXIT", .align = Align::kRight},
                   {.title = "CREATED", .whole = true},
                   {.title = "OWNER"}});
  std::string below;
  for (const v1::RunSummary& run : runs.runs()) {
    table.AddRow({run.run_id(), run.playbook_name(), StateWord(run, unfinished), TrialsDone(run),
                  run.verdict(), Code(run), FormatWallTime(run.created_wall_ns()), run.owner()});
    if (IsLeft(run, unfinished)) {
      below += Wrapped("", Printable(run.run_id() + ": " + run.reason()), kColumnsMax);
    }
  }
  return table.Format(kColumnsMax) + below;
}

std::string FormatStatus(const v1::RunRecord& run, Unfinished unfinished) {
  const v1::RunSummary& summary = run.summary();
  std::string text =
      fmt::format("{}  {}  {}   {} trials ended, {} valid\n", Printable(summary.run_id()),
                  Printable(summary.playbook_name()), StateWord(summary, unfinished),
                  TrialsDone(summary), summary.trials_valid());
  text +=
      fmt::format("created {}   ended {}   owner {}\n", FormatWallTime(summary.created_wall_ns()),
                  FormatWallTime(summary.ended_wall_ns()),
                  summary.owner().empty() ? "-" : Printable(summary.owner()));
  if (summary.eta_ns() > 0) text += "about " + Ago(summary.eta_ns()) + " left\n";
  if (!summary.reason().empty()) text += Wrapped("", Printable(summary.reason()), kColumnsMax);
  if (!summary.verdict().empty()) {
    text += fmt::format("verdict {}   exit {}\n", Printable(summary.verdict()), Code(summary));
  }
  TextTable table({{.title = "TRIAL", .align = Align::kRight},
                   {.title = "CELL"},
                   {.title = "REPEAT", .align = Align::kRight},
                   {.title = "STATE", .whole = true},
                   {.title = "SKEW", .align = Align::kRight},
                   {.title = "OVERLAP", .align = Align::kRight},
                   {.title = "REASON"}});
  for (const v1::TrialRecord& trial : run.trials()) AddTrialRow(trial, table);
  return table.empty() ? text : text + "\n" + table.Format(kColumnsMax);
}

std::string FormatHosts(const v1::HostsReply& hosts) {
  if (hosts.hosts().empty())
    return "no hosts; start `labrack-agent` on the machines to be tested\n";
  TextTable table({{.title = "HOST", .whole = true},
                   {.title = "AGENT"},
                   {.title = "STATE", .whole = true},
                   {.title = "KERNEL"},
                   {.title = "CPUS", .align = Align::kRight},
                   {.title = "MEMORY", .align = Align::kRight},
                   {.title = "DISKS", .align = Align::kRight},
                   {.title = "STACKS"},
                   {.title = "WORKING ON"}});
  for (const v1::HostRecord& host : hosts.hosts()) {
    const v1::Inventory& inventory = host.inventory();
    std::string state = host.session_state();
    if (state != "ONLINE" && host.silent_ns() > 0) state += " " + Ago(host.silent_ns());
    if (!host.dirty().empty()) state += ", dirty";
    const auto lent = std::ranges::count_if(
        inventory.disks(), [](const v1::LentDisk& disk) { return disk.refused().empty(); });
    table.AddRow({HostName(host), host.agent_id(), state, inventory.kernel(),
                  inventory.cpu_count() == 0 ? "" : std::to_string(inventory.cpu_count()),
                  MemoryOf(inventory), std::to_string(lent), StacksOf(inventory),
                  host.working_on()});
  }
  return table.Format(kColumnsMax);
}

std::string FormatHost(const v1::HostRecord& host) {
  const v1::Inventory& inventory = host.inventory();
  std::string text = fmt::format("{}  (agent {})  {}\n", Printable(HostName(host)),
                                 Printable(host.agent_id()), Printable(host.session_state()));
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty())
      text += Wrapped(fmt::format("  {:<12}", name), Printable(value), kColumnsMax);
  };
  line("kernel", inventory.kernel());
  line("system", inventory.os());
  line("cpu", inventory.cpu_count() == 0
                  ? ""
                  : fmt::format("{} x {}", inventory.cpu_count(), inventory.cpu_model()));
  line("governor", inventory.cpu_governor());
  line("memory", inventory.memory_bytes() == 0 ? "" : Size(inventory.memory_bytes()));
  line("virtual", inventory.virtualization());
  line("root", inventory.is_root() ? "yes" : "no");
  line("exec", inventory.allow_exec() ? "allowed" : "not allowed");
  line("agent", inventory.agent_version() +
                    (inventory.git_commit().empty() ? "" : " (" + inventory.git_commit() + ")"));
  line("metrics", inventory.metrics_address());
  line("round trip", host.round_trip_ns() > 0 ? Ago(host.round_trip_ns()) : "");
  line("working on", host.working_on());
  line("dirty", host.dirty());
  const std::map<std::string, std::string> labels(inventory.labels().begin(),
                                                  inventory.labels().end());
  for (const auto& [name, value] : labels) line("label", fmt::format("{}={}", name, value));
  for (const v1::LentDisk& disk : inventory.disks()) {
    line("disk", disk.id() + ", " + Size(disk.free_bytes()) + " of " + Size(disk.capacity_bytes()) +
                     " free, on " + disk.backing() +
                     (disk.refused().empty() ? "" : "; REFUSED: " + disk.refused()));
  }
  for (const v1::StackSupport& support : inventory.stack_support()) {
    line("stack", support.kind() + (support.supported() ? "" : ": no, " + support.reason()));
  }
  for (const v1::Tool& tool : inventory.tools()) {
    line("tool", tool.name() + "  " + tool.version() + "  " + tool.path());
  }
  return text;
}

std::string FormatDisks(const v1::HostsReply& hosts) {
  TextTable table({{.title = "HOST", .whole = true},
                   {.title = "DISK"},
                   {.title = "KIND"},
                   {.title = "FREE", .align = Align::kRight},
                   {.title = "CAPACITY", .align = Align::kRight},
                   {.title = "ON"},
                   {.title = "LENT"}});
  for (const v1::HostRecord& host : hosts.hosts()) {
    for (const v1::LentDisk& disk : host.inventory().disks()) {
      const bool known = disk.capacity_bytes() > 0;
      table.AddRow({HostName(host), disk.id(), disk.kind(), known ? Size(disk.free_bytes()) : "-",
                    known ? Size(disk.capacity_bytes()) : "-", disk.backing(),
                    disk.refused().empty() ? "yes" : "no: " + disk.refused()});
    }
  }
  // Reasons and identities must be readable whole; a list of disks may be wide.
  constexpr std::size_t kDiskColumnsMax = 1000;
  return table.empty() ? "no disks are lent\n" : table.Format(kDiskColumnsMax);
}

std::string FormatPlan(const v1::Plan& plan) {
  std::string text = PlanHead(plan) + PlanHosts(plan) + PlanCells(plan) + PlanTrials(plan);
  if (!plan.notes().empty()) text += "\nNOTES\n";
  for (const std::string& note : plan.notes()) text += Wrapped("  ", Printable(note), kColumnsMax);
  return text;
}

namespace {

std::vector<v1::ModelledDisk> ModelsOf(const v1::HostsReply& hosts) {
  std::vector<v1::ModelledDisk> all;
  std::set<std::string> seen;
  for (const v1::HostRecord& host : hosts.hosts()) {
    for (const v1::ModelledDisk& model : host.inventory().modelled_disks()) {
      if (seen.insert(model.name()).second) all.push_back(model);
    }
  }
  return all;
}

}  // namespace

std::string FormatModels(const v1::HostsReply& hosts) {
  TextTable table({{.title = "MODEL", .whole = true},
                   {.title = "SIZE", .align = Align::kRight, .whole = true},
                   {.title = "WHAT IT IS", .whole = true}});
  for (const v1::ModelledDisk& model : ModelsOf(hosts)) {
    table.AddRow({model.name(), Size(model.size_bytes()), model.summary()});
  }
  return table.empty() ? "no host has models\n" : table.Format(kColumnsMax);
}

std::string FormatModelsJson(const v1::HostsReply& hosts) {
  nlohmann::ordered_json json{{"schema", "labrack.models"}, {"schema_version", 1}};
  json["modelled_disks"] = nlohmann::ordered_json::array();
  for (const v1::ModelledDisk& model : ModelsOf(hosts)) {
    json["modelled_disks"].push_back(
        {{"name", model.name()}, {"summary", model.summary()}, {"size_bytes", model.size_bytes()}});
  }
  return json.dump(2) + "\n";
}

}  // namespace labrack::report
