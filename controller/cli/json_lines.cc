#include "controller/cli/json_lines.h"

#include <nlohmann/json.hpp>

#include "controller/cli/run_state.h"
#include "controller/report/lists.h"
#include "storage/base/version.h"

namespace labrack::cli {
namespace {

// A text or a list of texts; one that is empty is absent.
template <typename T>
void AddUnlessEmpty(nlohmann::json& json, const char* name, const T& value) {
  if (!value.empty()) json[name] = value;
}

nlohmann::json RunJson(const v1::RunSummary& run) {
  nlohmann::json json = {{"id", run.run_id()},
                         {"playbook", run.playbook_name()},
                         {"state", report::FormatRunState(run.state())},
                         {"trials_total", run.trials_total()},
                         {"trials_done", run.trials_done()},
                         {"trials_valid", run.trials_valid()}};
  AddUnlessEmpty(json, "reason", run.reason());
  AddUnlessEmpty(json, "cell", run.current_cell());
  if (run.eta_ns() > 0) json["eta_ns"] = run.eta_ns();
  if (HasEnded(run.state())) {
    json["exit_code"] = run.exit_code();
    json["verdict"] = run.verdict();
  }
  return json;
}

nlohmann::json HostJson(const v1::HostProgress& host) {
  nlohmann::json json = {{"agent", host.agent_id()},
                         {"host", host.host_name()},
                         {"session", host.session_state()},
                         {"age_ns", host.age_ns()}};
  if (!host.has_progress()) return json;
  const v1::AssignmentProgress& progress = host.progress();
  json["assignment"] = progress.assignment_id();
  json["phase"] = PhaseWord(progress.phase());
  AddUnlessEmpty(json, "step", progress.step());
  if (progress.fraction() >= 0) json["fraction"] = progress.fraction();
  // Without a sample the figures are absent, never zero.
  if (HasSample(progress)) {
    json["operations_per_second"] = progress.operations_per_second();
    json["bytes_per_second"] = progress.bytes_per_second();
    json["p50_ns"] = progress.p50_ns();
    json["p99_ns"] = progress.p99_ns();
  }
  return json;
}

nlohmann::json TrialJson(const v1::TrialSummary& trial) {
  nlohmann::json json = {{"index", trial.index()},
                         {"cell", trial.cell_name()},
                         {"repeat", trial.repeat()},
                         {"state", trial.state()}};
  AddUnlessEmpty(json, "reason", trial.reason());
  if (trial.state() == "valid" && trial.host_count() > 1) {
    json["start_skew_ns"] = trial.start_skew_ns();
    json["overlap"] = trial.overlap();
  }
  return json;
}

nlohmann::json ProblemJson(const config::Problem& problem) {
  nlohmann::json json = {{"code", problem.code}, {"message", problem.message}};
  AddUnlessEmpty(json, "file", problem.file);
  if (problem.span.begin.line > 0) {
    json["line"] = problem.span.begin.line;
    json["column"] = problem.span.begin.column;
    json["end_line"] = problem.span.end.line;
    json["end_column"] = problem.span.end.column;
  }
  AddUnlessEmpty(json, "label", problem.label);
  AddUnlessEmpty(json, "notes", problem.notes);
  AddUnlessEmpty(json, "helps", problem.helps);
  return json;
}

std::string Dump(const nlohmann::json& json, int indent = -1) {
  // What is no UTF-8 is shown as such, instead of ending the program.
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string JsonVersionLine() {
  return Dump({{"type", "version"}, {"format", "1.0"}, {"labrack", Version()}});
}

std::string JsonTextLine(std::string_view type, const std::string& text) {
  return Dump({{"type", type}, {"text", text}});
}

std::string JsonErrorLine(const Error& error, const std::string& text, ExitCode code,
                          const std::string& help) {
  nlohmann::json json = {{"type", "error"},
                         {"error", ErrcName(error.code())},
                         {"text", text},
                         {"exit_code", ToInt(code)}};
  AddUnlessEmpty(json, "subject", error.subject());
  AddUnlessEmpty(json, "help", help);
  return Dump(json);
}

std::string JsonProblemLine(const config::Problem& problem) {
  nlohmann::json json = ProblemJson(problem);
  json["type"] = "problem";
  return Dump(json);
}

std::string JsonEndLine(ExitCode code) {
  return Dump({{"type", "end"}, {"exit_code", ToInt(code)}, {"meaning", ExitCodeMeaning(code)}});
}

std::string JsonEventLine(const v1::RunEvent& event) {
  nlohmann::json json = {{"type", "event"}, {"wall_ns", event.wall_ns()}};
  json["run"] = RunJson(event.summary());
  AddUnlessEmpty(json, "note", event.note());
  for (const v1::HostProgress& host : event.hosts()) json["hosts"].push_back(HostJson(host));
  for (const v1::TrialSummary& trial : event.trials()) json["trials"].push_back(TrialJson(trial));
  return Dump(json);
}

std::string ProblemsJson(const std::string& file, const config::Problems& problems) {
  nlohmann::json list = nlohmann::json::array();
  for (const config::Problem& problem : problems.list()) list.push_back(ProblemJson(problem));
  const nlohmann::json whole = {{"file", file},
                                {"valid", problems.empty()},
                                {"problem_count", problems.total()},
                                {"problems", std::move(list)}};
  return Dump(whole, 2) + "\n";
}

}  // namespace labrack::cli
