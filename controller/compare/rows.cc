#include "controller/compare/rows.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace labrack::compare {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A row on its way: Holm needs all of them before any verdict is known.
struct Draft {
  v1::ComparisonRow row;
  Goal goal;
  std::optional<Judgement> judgement;  // absent for rows of the base and those without values
};

// What all rows of one comparison have in common.
struct Pairing {
  const CellView* base = nullptr;  // nullptr: nothing to compare with
  const CellView* test = nullptr;
  std::string base_name;
  std::vector<std::string> agents = {};
  std::string host = {};  // empty: all hosts
};

Goal GoalOf(const v1::RunRecord& run, const Metric& metric) {
  const v1::Playbook& playbook = run.plan().playbook();
  return {.lower_is_better = metric.lower_is_better,
          .margin =
              metric.kind == MetricKind::kLatency ? playbook.latency_margin() : playbook.margin()};
}

void Blank(v1::ComparisonRow& row) {
  row.set_median(kNaN);
  row.set_base_median(kNaN);
  row.set_ratio(kNaN);
  row.set_ratio_low(kNaN);
  row.set_ratio_high(kNaN);
  row.set_detectable(kNaN);
  row.set_p_value(kNaN);
  row.set_p_adjusted(kNaN);
  row.set_coefficient_of_variation(kNaN);
}

void SetValues(const Series& series, google::protobuf::RepeatedField<double>& values) {
  for (const TrialValue& trial : series) values.Add(trial.value);
}

std::vector<double> ValuesOf(const Series& series) {
  std::vector<double> values;
  for (const TrialValue& trial : series) values.push_back(trial.value);
  return values;
}

Draft NewDraft(const v1::RunRecord& run, const CellView& cell, const MetricSeries& series,
               const Pairing& pairing) {
  Draft draft;
  draft.goal = GoalOf(run, series.metric);
  v1::ComparisonRow& row = draft.row;
  Blank(row);
  row.set_workload(WorkloadName(cell, series.step));
  row.set_parameters(cell.parameters());
  row.set_stack(cell.stack());
  row.set_base(pairing.base_name);
  row.set_metric(series.metric.name);
  row.set_unit(series.metric.unit);
  row.set_host(pairing.host);
  row.set_lower_is_better(series.metric.lower_is_better);
  row.set_primary(series.metric.kind == MetricKind::kPrimary);
  row.set_margin(draft.goal.margin);
  return draft;
}

void SetArm(const Series& series, v1::ComparisonRow& row) {
  row.set_trials(static_cast<std::uint32_t>(series.size()));
  SetValues(series, *row.mutable_values());
  if (!series.empty()) row.set_median(Median(ValuesOf(series)));
  if (series.size() > 1) row.set_coefficient_of_variation(LogDeviation(ValuesOf(series)));
}

void SetBaseArm(const Series& series, v1::ComparisonRow& row) {
  row.set_base_trials(static_cast<std::uint32_t>(series.size()));
  SetValues(series, *row.mutable_base_values());
  if (!series.empty()) row.set_base_median(Median(ValuesOf(series)));
}

// One seed a row, from the plan's and the row's name: adding a cell does not move other intervals.
Seed SeedOf(const v1::RunRecord& run, const v1::ComparisonRow& row) {
  return Derive(Derive(Seed{run.plan().seed()}, "compare"),
                row.workload() + "\n" + row.parameters() + "\n" + row.stack() + "\n" + row.base() +
                    "\n" + row.metric() + "\n" + row.host());
}

std::string MissingText(const MetricSeries& series, const std::string& whose) {
  if (series.missing == 0) return "";
  return fmt::format("{} of {} trials of {} have no value: {}", series.missing,
                     series.missing + series.series.size(), whose, series.why_missing);
}

// Values of some trials only would favour the trials that had many samples, so nothing is judged
// unless every valid trial has one.
void Compare(const v1::RunRecord& run, const MetricSeries& base, const MetricSeries& test,
             Draft& draft) {
  v1::ComparisonRow& row = draft.row;
  SetArm(test.series, row);
  SetBaseArm(base.series, row);
  row.set_verdict(v1::COMPARISON_VERDICT_INCONCLUSIVE);
  std::string missing = MissingText(test, row.stack());
  if (missing.empty()) missing = MissingText(base, row.base());
  if (!missing.empty()) {
    row.set_reason(missing);
    return;
  }
  if (base.series.empty() || test.series.empty()) {
    // No trial at all, or none with the ten samples that a percentile needs above it.
    row.set_reason("no valid trial of " + (test.series.empty() ? row.stack() : row.base()) +
                   " has a value for " + row.metric());
    return;
  }
  draft.judgement = Judge(base.series, test.series, SeedOf(run, row));
  const Judgement& judgement = *draft.judgement;
  row.set_median(judgement.median);
  row.set_base_median(judgement.base_median);
  row.set_ratio(judgement.ratio);
  row.set_ratio_low(judgement.interval.low);
  row.set_ratio_high(judgement.interval.high);
  row.set_detectable(judgement.detectable);
  row.set_coefficient_of_variation(judgement.variation);
  row.set_p_value(judgement.test.p);
  row.set_trials(static_cast<std::uint32_t>(judgement.trials));
  row.set_base_trials(static_cast<std::uint32_t>(judgement.base_trials));
}

const MetricSeries* Find(const std::vector<MetricSeries>& all, const MetricSeries& like) {
  for (const MetricSeries& series : all) {
    if (series.step == like.step && series.metric.name == like.metric.name) return &series;
  }
  return nullptr;
}

void AddBaseRows(const RunView& run, const Pairing& pairing, std::vector<Draft>& drafts) {
  for (const MetricSeries& series : SeriesOf(*pairing.base, pairing.agents)) {
    Draft draft = NewDraft(*run.record, *pairing.base, series, pairing);
    SetArm(series.series, draft.row);
    SetBaseArm(series.series, draft.row);
    draft.row.set_verdict(v1::COMPARISON_VERDICT_BASE);
    draft.row.set_reason(MissingText(series, draft.row.stack()));
    drafts.push_back(std::move(draft));
  }
}

// Metrics that either side has; the other side's column stays empty where it has none.
void AddComparedRows(const RunView& run, const Pairing& pairing, std::vector<Draft>& drafts) {
  const std::vector<MetricSeries> test = SeriesOf(*pairing.test, pairing.agents);
  std::vector<MetricSeries> base;
  if (pairing.base != nullptr) base = SeriesOf(*pairing.base, pairing.agents);
  for (const MetricSeries& series : test) {
    Draft draft = NewDraft(*run.record, *pairing.test, series, pairing);
    if (pairing.base == nullptr) {
      SetArm(series.series, draft.row);
      draft.row.set_reason("there is nothing to compare with");
    } else {
      const MetricSeries* partner = Find(base, series);
      const MetricSeries none{.step = series.step, .metric = series.metric};
      Compare(*run.record, partner == nullptr ? none : *partner, series, draft);
    }
    drafts.push_back(std::move(draft));
  }
  for (const MetricSeries& series : base) {
    if (Find(test, series) != nullptr) continue;
    // The base's cell knows the steps when the other has no valid trial.
    Draft draft = NewDraft(*run.record, *pairing.base, series, pairing);
    draft.row.set_stack(pairing.test->stack());
    Compare(*run.record, series, {.step = series.step, .metric = series.metric}, draft);
    drafts.push_back(std::move(draft));
  }
}

// Rows over all hosts and rows of single hosts are families of their own: the first are the run's
// findings, the second explain them.
std::size_t RuleFamily(std::vector<Draft>& drafts, bool of_hosts) {
  std::vector<Draft*> family;
  std::vector<double> p;
  std::vector<double> student;
  for (Draft& draft : drafts) {
    if (!draft.judgement || draft.row.host().empty() == of_hosts) continue;
    if (std::min(draft.judgement->base_trials, draft.judgement->trials) < kVerdictTrialsMin) {
      const Ruling ruling = Rule(*draft.judgement, draft.goal, 1, 1, 1);
      draft.row.set_reason(ruling.reason);
      draft.row.set_trials_needed(ruling.trials_needed);
      continue;
    }
    family.push_back(&draft);
    p.push_back(draft.judgement->test.p);
    student.push_back(draft.judgement->student_p);
  }
  p = Holm(p);
  student = Holm(student);
  for (std::size_t i = 0; i < family.size(); ++i) {
    const Ruling ruling =
        Rule(*family[i]->judgement, family[i]->goal, p[i], student[i], family.size());
    v1::ComparisonRow& row = family[i]->row;
    row.set_verdict(ruling.verdict);
    row.set_reason(ruling.reason);
    row.set_trials_needed(ruling.trials_needed);
    row.set_p_adjusted(p[i]);
  }
  return family.size();
}

void Finish(std::vector<Draft> drafts, v1::Report& report) {
  report.set_tests_count(static_cast<std::uint32_t>(RuleFamily(drafts, false)));
  RuleFamily(drafts, true);
  for (const bool of_hosts : {false, true}) {
    for (Draft& draft : drafts) {
      if (draft.row.host().empty() != of_hosts) *report.add_rows() = std::move(draft.row);
    }
  }
}

// All hosts together and, when there are several, each host alone.
void ForEachScope(const RunView& run, const Pairing& pairing,
                  const std::function<void(const Pairing&)>& add) {
  add(pairing);
  if (pairing.agents.size() < 2 || pairing.agents.size() > kHostRowHostsMax) return;
  for (const std::string& agent : pairing.agents) {
    Pairing one = pairing;
    one.agents = {agent};
    one.host = HostNameOf(*run.record, agent);
    add(one);
  }
}

std::vector<std::string> AgentsOf(const v1::PlannedCell& cell) {
  return {cell.agent_ids().begin(), cell.agent_ids().end()};
}

const CellView* FindCell(const RunView& run, const std::string& stack, const CellView& like) {
  for (const CellView& cell : run.cells) {
    if (cell.stack() == stack && cell.workload() == like.workload() &&
        cell.parameters() == like.parameters()) {
      return &cell;
    }
  }
  return nullptr;
}

// Hosts that only one side has cannot be compared: a sum over more hosts is no better.
void NoteHostsLeftOut(const v1::RunRecord& run, const Pairing& pairing, v1::Report& report) {
  for (const CellView* cell : {pairing.base, pairing.test}) {
    for (const std::string& agent : cell->cell->agent_ids()) {
      if (std::ranges::find(pairing.agents, agent) != pairing.agents.end()) continue;
      v1::SkippedItem& item = *report.add_skipped();
      item.set_what(fmt::format("{} on {}", CellName(*cell->cell), HostNameOf(run, agent)));
      item.set_reason("only hosts that ran both sides are compared");
      item.set_kind("unsupported");
    }
  }
}

}  // namespace

std::string BaseStack(const v1::RunRecord& run) {
  const v1::Playbook& playbook = run.plan().playbook();
  if (!playbook.base().empty()) return playbook.base();
  if (!playbook.stacks().empty()) return playbook.stacks(0).name();
  return run.plan().cells().empty() ? "" : run.plan().cells(0).stack().name();
}

void AddRows(const RunView& run, v1::Report& report) {
  const std::string base_stack = BaseStack(*run.record);
  std::vector<Draft> drafts;
  // Cells of one workload and parameters stand together, whatever the order of the plan.
  std::vector<const CellView*> done;
  for (const CellView& first : run.cells) {
    if (std::ranges::find(done, &first) != done.end()) continue;
    const CellView* base = FindCell(run, base_stack, first);
    if (base != nullptr) {
      const Pairing pairing{.base = base, .base_name = base_stack, .agents = AgentsOf(*base->cell)};
      ForEachScope(run, pairing, [&](const Pairing& one) { AddBaseRows(run, one, drafts); });
      done.push_back(base);
    }
    for (const CellView& cell : run.cells) {
      if (&cell == base || FindCell(run, cell.stack(), first) != &cell) continue;
      done.push_back(&cell);
      Pairing pairing{.base = base, .test = &cell, .base_name = base == nullptr ? "" : base_stack};
      pairing.agents =
          base == nullptr ? AgentsOf(*cell.cell) : CommonAgents(*base->cell, *cell.cell);
      if (pairing.agents.empty()) continue;
      ForEachScope(run, pairing, [&](const Pairing& one) { AddComparedRows(run, one, drafts); });
    }
  }
  Finish(std::move(drafts), report);
}

void AddRows(const RunView& base, const RunView& test, v1::Report& report) {
  std::vector<Draft> drafts;
  const std::string& base_name = base.record->summary().run_id();
  for (const CellView& cell : test.cells) {
    const CellView* partner = FindCell(base, cell.stack(), cell);
    if (partner == nullptr) {
      v1::SkippedItem& item = *report.add_skipped();
      item.set_what(CellName(*cell.cell));
      item.set_reason("only in " + test.record->summary().run_id());
      item.set_kind("unsupported");
      continue;
    }
    Pairing pairing{.base = partner, .test = &cell, .base_name = base_name};
    pairing.agents = CommonAgents(*partner->cell, *cell.cell);
    NoteHostsLeftOut(*test.record, pairing, report);
    if (pairing.agents.empty()) continue;
    ForEachScope(test, pairing, [&](const Pairing& one) { AddComparedRows(test, one, drafts); });
  }
  for (const CellView& cell : base.cells) {
    if (FindCell(test, cell.stack(), cell) != nullptr) continue;
    v1::SkippedItem& item = *report.add_skipped();
    item.set_what(CellName(*cell.cell));
    item.set_reason("only in " + base_name);
    item.set_kind("unsupported");
  }
  Finish(std::move(drafts), report);
}

}  // namespace labrack::compare
