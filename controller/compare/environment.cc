#include "controller/compare/environment.h"

#include <algorithm>

#include <fmt/format.h>

#include "controller/compare/rows.h"
#include "proto/convert/names.h"
#include "storage/base/units.h"

namespace labrack::compare {
namespace {

Facts FactsOf(const v1::Environment& environment) {
  const v1::Inventory& host = environment.host();
  Facts facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) facts.push_back({name, value});
  };
  add("kernel", host.kernel());
  add("system", host.os());
  add("cpu",
      host.cpu_count() == 0 ? "" : fmt::format("{} x {}", host.cpu_count(), host.cpu_model()));
  add("governor", host.cpu_governor());
  add("memory", host.memory_bytes() == 0 ? "" : FormatBytes(Bytes(host.memory_bytes())));
  add("virtual", host.virtualization());
  add("disk", environment.backing_device());
  add("agent", host.git_commit().empty() ? host.agent_version()
                                         : host.agent_version() + " " + host.git_commit());
  std::map<std::string, std::string> tools;
  for (const v1::Tool& tool : environment.tools()) tools[tool.name()] = tool.version();
  for (const auto& [name, version] : tools) add(fmt::format("tool {}", name).c_str(), version);
  return facts;
}

std::string ValueOf(const Facts& facts, const std::string& name) {
  for (const auto& [fact, value] : facts) {
    if (fact == name) return value;
  }
  return "(not known)";
}

using Host = Surroundings::Host;

void AddLine(const std::string& host, const std::string& text, v1::Report& report) {
  v1::EnvironmentLine& line = *report.add_environment();
  line.set_host_name(host);
  line.set_text(text);
}

std::vector<std::string> FactNames(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) {
    for (const auto& [name, value] : host.facts) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// "kernel differs: 6.1.0-18 on st-01, st-02; 6.1.0-20 on st-03".
void AddHostDifferences(const std::vector<Host>& hosts, v1::Report& report) {
  for (const std::string& name : FactNames(hosts)) {
    std::map<std::string, std::string> hosts_by_value;
    for (const Host& host : hosts) {
      std::string& list = hosts_by_value[ValueOf(host.facts, name)];
      if (!list.empty()) list += ", ";
      list += host.name;
    }
    // Each host has a disk of its own; another serial is no difference worth a line.
    if (hosts_by_value.size() < 2 || name == "disk") continue;
    std::string text = name + " differs between hosts: ";
    bool first = true;
    for (const auto& [value, list] : hosts_by_value) {
      text += fmt::format("{}{} on {}", first ? "" : "; ", value, list);
      first = false;
    }
    AddLine("", text, report);
  }
}

void AddRunDifferences(const std::vector<Host>& base, const std::vector<Host>& test,
                       v1::Report& report) {
  for (const Host& now : test) {
    const auto before = std::ranges::find(base, now.name, &Host::name);
    if (before == base.end()) {
      AddLine("", now.name + " took part in the test run only", report);
      continue;
    }
    for (const std::string& name : FactNames({*before, now})) {
      const std::string was = ValueOf(before->facts, name);
      const std::string is = ValueOf(now.facts, name);
      if (was == is) continue;
      AddLine("",
              fmt::format("{} differs between the runs on {}: base {}, test {}", name, now.name,
                          was, is),
              report);
    }
  }
  for (const Host& before : base) {
    if (std::ranges::find(test, before.name, &Host::name) != test.end()) continue;
    AddLine("", before.name + " took part in the base run only", report);
  }
}

void Warn(v1::Report& report, const char* code, std::string message, std::string cure) {
  v1::Warning& warning = *report.add_warnings();
  warning.set_code(code);
  warning.set_message(std::move(message));
  warning.set_cure(std::move(cure));
}

void WarnOfTiming(const v1::Report& of, v1::Report& report) {
  if (of.overlap_min() >= 0 && of.overlap_min() < kOverlapMin) {
    Warn(report, "LW201",
         fmt::format("the hosts measured together for {:.1f} % of the time only (at worst)",
                     of.overlap_min() * 100),
         "let the hosts measure for longer: a larger file, or `stop` with a `duration` where the "
         "workload has it, so that all of them end together");
  }
  if (of.start_skew_max_ns() > kStartSkewMaxNs) {
    Warn(report, "LW202",
         fmt::format("a host started {} away from the common instant",
                     FormatDuration(Nanoseconds(of.start_skew_max_ns()))),
         "look at the load and the network of the hosts");
  }
}

bool HostsDiffer(const v1::Report& report) {
  return std::ranges::any_of(report.environment(), [](const v1::EnvironmentLine& line) {
    return line.host_name().empty();
  });
}

}  // namespace

void Surroundings::Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial) {
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    AddOfTrial(cell, assignment);
    if (!assignment.result().has_environment()) continue;
    if (!agents_.insert(assignment.agent_id()).second) continue;
    hosts_.push_back(
        {.name = assignment.host_name(), .facts = FactsOf(assignment.result().environment())});
  }
  AddOfWorkers(cell, trial);
}

void Surroundings::AddOfWorkers(const v1::PlannedCell& cell, const v1::TrialRecord& trial) {
  std::set<std::string> in_trial;
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    for (const v1::Warning& warning : assignment.result().warnings()) {
      if (!in_trial.insert(warning.code()).second) continue;
      const std::string name = convert::CellName(cell);
      const auto [place, is_new] = places_.try_emplace({name, warning.code()}, of_workers_.size());
      if (is_new) of_workers_.push_back({.warning = warning, .cell = name});
      ++of_workers_[place->second].trials;
    }
  }
}

// Facts that a worker states about one trial; each said once a stack and host.
void Surroundings::AddOfTrial(const v1::PlannedCell& cell, const v1::AssignmentRecord& assignment) {
  const v1::AssignmentResult& result = assignment.result();
  const std::string& host = assignment.host_name();
  if (result.clean_up().outcome() == v1::OUTCOME_FAILED) {
    WarnOnce("LW203", fmt::format("{}: clean-up failed: {}", host, result.clean_up().reason()),
             "the agent tries again when it starts; look for left mounts and loop devices");
  }
  const auto stand_in = cell.stand_ins().find(assignment.agent_id());
  if (stand_in != cell.stand_ins().end()) {
    WarnOnce("LW204",
             fmt::format("a directory stands in for {} on {}: {}", cell.stack().name(), host,
                         stand_in->second),
             "its figures are those of the host's own file system");
  }
  const std::string& boot = result.environment().boot_id();
  if (boot.empty()) return;
  const auto [known, is_new] = boots_.try_emplace(host, boot);
  if (!is_new && known->second != boot) {
    WarnOnce("LW206", fmt::format("{} was rebooted in the middle of the run", host),
             "run it again when the host stays up");
  }
}

void Surroundings::WarnOnce(const char* code, const std::string& message, const char* cure) {
  if (!said_.insert(code + message).second) return;
  v1::Warning& warning = warnings_.emplace_back();
  warning.set_code(code);
  warning.set_message(message);
  warning.set_cure(cure);
}

std::vector<Host> Surroundings::Hosts() const {
  std::vector<Host> hosts = hosts_;
  std::ranges::sort(hosts, {}, &Host::name);
  return hosts;
}

void Surroundings::AppendWarningsTo(v1::Report& report) const {
  for (const v1::Warning& warning : warnings_) *report.add_warnings() = warning;
  for (const OfWorkers& seen : of_workers_) {
    v1::Warning& warning = *report.add_warnings();
    warning = seen.warning;
    warning.set_message(
        fmt::format("{}: {}{}", seen.cell, seen.warning.message(),
                    seen.trials > 1 ? fmt::format(" ({} trials)", seen.trials) : ""));
  }
}

void AddEnvironment(const std::vector<const Surroundings*>& runs, v1::Report& report) {
  const std::vector<Host> hosts = runs.back()->Hosts();
  for (const Host& host : hosts) {
    std::string text;
    for (const auto& [name, value] : host.facts) {
      if (!text.empty()) text += "; ";
      text += fmt::format("{} {}", name, value);
    }
    AddLine(host.name, text, report);
  }
  AddHostDifferences(hosts, report);
  if (runs.size() > 1) AddRunDifferences(runs.front()->Hosts(), hosts, report);
}

void AddWarnings(const std::vector<const Surroundings*>& runs, v1::Report& report) {
  WarnOfTiming(report, report);
  for (const Surroundings* run : runs) run->AppendWarningsTo(report);
  if (HostsDiffer(report)) {
    Warn(report, "LW205", "the environments differ (see environment)",
         "a difference in the figures may be one of the machines, not of the stacks");
  }
  if (report.clock() == "virtual") {
    Warn(report, "LW207", "the disks are modelled: all times are virtual",
         "compare virtual runs with virtual runs only");
  }
  if (report.hosts_count() > kHostRowHostsMax) {
    Warn(report, "LW208",
         fmt::format("{} hosts took part; rows of single hosts are left out", report.hosts_count()),
         "`labrack export RUN --as csv` has every host");
  }
}

}  // namespace labrack::compare
