#include "controller/compare/rows.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "controller/compare/match.h"
#include "proto/convert/names.h"

namespace labrack::compare {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A row on its way: Holm needs all of them before any verdict is known.
struct Draft {
  v1::ComparisonRow row;
  Claim claim;
  std::optional<Judgement> judgement;  // absent for rows of the base and those without values
};

// What all rows of one comparison have in common.
struct Pairing {
  const CellView* base = nullptr;  // nullptr: nothing to compare with
  const CellView* test = nullptr;  // nullptr: the rows of the base itself
  std::string base_name;
  Repeats repeats = Repeats::kShared;
  std::vector<std::string> agents = {};
  std::string host = {};  // empty: all hosts
};

Claim ClaimOf(const v1::RunRecord& run, const Metric& metric) {
  const v1::Playbook& playbook = run.plan().playbook();
  return RowClaim(metric.kind == MetricKind::kLatency ? playbook.latency_margin()
                                                      : playbook.margin());
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
  row.set_first_done_median(kNaN);
  row.set_last_done_median(kNaN);
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
  draft.claim = ClaimOf(run, series.metric);
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
  row.set_margin(draft.claim.margin);
  return draft;
}

void SetArm(const MetricSeries& metric, v1::ComparisonRow& row) {
  const Series& series = metric.series;
  if (!metric.first_done.empty()) row.set_first_done_median(Median(metric.first_done));
  if (!metric.last_done.empty()) row.set_last_done_median(Median(metric.last_done));
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
  return WhyNotJudged(series, whose, series, whose);
}

void Compare(const v1::RunRecord& run, const MetricSeries& base, const MetricSeries& test,
             Repeats repeats, Draft& draft) {
  v1::ComparisonRow& row = draft.row;
  SetArm(test, row);
  SetBaseArm(base.series, row);
  const std::string why_not = WhyNotJudged(base, row.base(), test, row.stack());
  if (!why_not.empty()) {
    row.set_verdict(v1::COMPARISON_VERDICT_NOT_JUDGED);
    row.set_reason(why_not);
    return;
  }
  row.set_verdict(v1::COMPARISON_VERDICT_INCONCLUSIVE);
  draft.judgement = Judge(base.series, test.series, repeats, SeedOf(run, row));
  const Judgement& judgement = *draft.judgement;
  row.set_median(judgement.median);
  row.set_base_median(judgement.base_median);
  row.set_ratio(judgement.ratio);
  row.set_ratio_low(judgement.interval.low);
  row.set_ratio_high(judgement.interval.high);
  row.set_detectable(judgement.detectable);
  row.set_coefficient_of_variation(judgement.variation);
  row.set_p_value(judgement.chance.test.p);
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
    SetArm(series, draft.row);
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
      SetArm(series, draft.row);
      draft.row.set_verdict(v1::COMPARISON_VERDICT_NOT_JUDGED);
      draft.row.set_reason(fmt::format("there is nothing to compare with: the base {} was not run",
                                       pairing.base_name));
    } else {
      const MetricSeries* partner = Find(base, series);
      const MetricSeries none{.step = series.step, .metric = series.metric};
      Compare(*run.record, partner == nullptr ? none : *partner, series, pairing.repeats, draft);
    }
    drafts.push_back(std::move(draft));
  }
  for (const MetricSeries& series : base) {
    if (Find(test, series) != nullptr) continue;
    // The base's cell knows the steps when the other has no valid trial.
    Draft draft = NewDraft(*run.record, *pairing.base, series, pairing);
    draft.row.set_stack(pairing.test->stack());
    Compare(*run.record, series, {.step = series.step, .metric = series.metric}, pairing.repeats,
            draft);
    drafts.push_back(std::move(draft));
  }
}

// Rows over all hosts and rows of single hosts are families of their own: the first are the run's
// findings, the second explain them.
std::size_t RuleFamily(std::vector<Draft>& drafts, bool of_hosts) {
  std::vector<Draft*> family;
  std::vector<Chance> chances;
  for (Draft& draft : drafts) {
    if (!draft.judgement || draft.row.host().empty() == of_hosts) continue;
    if (std::min(draft.judgement->base_trials, draft.judgement->trials) < kVerdictTrialsMin) {
      const Ruling ruling = Rule(*draft.judgement, draft.claim, Chance(), 1);
      draft.row.set_reason(ruling.reason);
      draft.row.set_trials_needed(ruling.trials_needed);
      continue;
    }
    family.push_back(&draft);
    chances.push_back(draft.judgement->chance);
  }
  chances = HolmAdjusted(std::move(chances));
  for (std::size_t i = 0; i < family.size(); ++i) {
    const Ruling ruling = Rule(*family[i]->judgement, family[i]->claim, chances[i], family.size());
    v1::ComparisonRow& row = family[i]->row;
    row.set_verdict(VerdictOf(ruling.place, row.lower_is_better()));
    row.set_reason(ruling.reason);
    row.set_trials_needed(ruling.trials_needed);
    row.set_p_adjusted(chances[i].test.p);
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

// Hosts that only one side has cannot be compared: a sum over more hosts is no better.
void NoteHostsLeftOut(const v1::RunRecord& run, const Pairing& pairing, v1::Report& report) {
  for (const CellView* cell : {pairing.base, pairing.test}) {
    for (const std::string& agent : cell->cell->agent_ids()) {
      if (std::ranges::find(pairing.agents, agent) != pairing.agents.end()) continue;
      v1::SkippedItem& item = *report.add_skipped();
      item.set_what(
          fmt::format("{} on {}", convert::CellName(*cell->cell), HostNameOf(run, agent)));
      item.set_reason("only hosts that ran both sides are compared");
      item.set_kind("unsupported");
    }
  }
}

void Skip(const CellView& cell, const std::string& kind, const std::string& reason,
          v1::Report& report) {
  v1::SkippedItem& item = *report.add_skipped();
  item.set_what(convert::CellName(*cell.cell));
  item.set_reason(reason);
  item.set_kind(kind);
}

}  // namespace

std::string BaseStack(const v1::RunRecord& run) {
  const v1::Playbook& playbook = run.plan().playbook();
  if (!playbook.base().empty()) return playbook.base();
  std::set<std::string> planned;
  for (const v1::PlannedCell& cell : run.plan().cells()) planned.insert(cell.stack().name());
  for (const v1::Stack& stack : playbook.stacks()) {
    if (planned.contains(stack.name())) return stack.name();
  }
  return run.plan().cells().empty() ? "" : run.plan().cells(0).stack().name();
}

namespace {

// The base with itself, then each other stack with the base, in the order of their rows.
void ForEachPairing(const RunView& run, const std::function<void(const Pairing&)>& use) {
  const std::string base_stack = BaseStack(*run.record);
  for (const CellGroup& group : run.groups) {
    const CellView* base = run.Find(base_stack, run.cells[group.cells.front()]);
    if (base != nullptr) {
      const Pairing pairing{.base = base, .base_name = base_stack, .agents = AgentsOf(*base->cell)};
      ForEachScope(run, pairing, use);
    }
    for (const std::size_t place : group.cells) {
      const CellView& cell = run.cells[place];
      if (&cell == base) continue;
      Pairing pairing{.base = base, .test = &cell, .base_name = base_stack};
      pairing.agents =
          base == nullptr ? AgentsOf(*cell.cell) : CommonAgents(*base->cell, *cell.cell);
      if (!pairing.agents.empty()) ForEachScope(run, pairing, use);
    }
  }
}

Pairing PairingOfRuns(const RunView& base, const CellView& partner, const CellView& cell) {
  return {.base = &partner,
          .test = &cell,
          .base_name = base.record->summary().run_id(),
          .repeats = Repeats::kApart,
          .agents = CommonAgents(*partner.cell, *cell.cell)};
}

}  // namespace

void WantRows(RunView& run) {
  ForEachPairing(run, [&](const Pairing& pairing) {
    for (const CellView* cell : {pairing.base, pairing.test}) {
      if (cell != nullptr) run.Want(*cell, pairing.agents);
    }
  });
}

void WantRows(RunView& base, RunView& test) {
  for (const CellView& cell : test.cells) {
    const CellView* partner = base.Find(cell.stack(), cell);
    if (partner == nullptr) continue;
    const Pairing pairing = PairingOfRuns(base, *partner, cell);
    if (pairing.agents.empty()) continue;
    ForEachScope(test, pairing, [&](const Pairing& one) {
      base.Want(*one.base, one.agents);
      test.Want(*one.test, one.agents);
    });
  }
}

void AddRows(const RunView& run, v1::Report& report) {
  std::vector<Draft> drafts;
  ForEachPairing(run, [&](const Pairing& pairing) {
    if (pairing.test == nullptr) {
      AddBaseRows(run, pairing, drafts);
    } else {
      AddComparedRows(run, pairing, drafts);
    }
  });
  Finish(std::move(drafts), report);
}

void AddRows(const RunView& base, const RunView& test, v1::Report& report) {
  std::vector<Draft> drafts;
  for (const CellView& cell : test.cells) {
    const CellView* partner = base.Find(cell.stack(), cell);
    if (partner == nullptr) {
      Skip(cell, "unsupported", "only in the test run", report);
      continue;
    }
    const std::string difference = DifferenceOfWork(*partner->cell, *cell.cell);
    if (!difference.empty()) {
      Skip(cell, "different", "not the same cell: " + difference, report);
      continue;
    }
    const Pairing pairing = PairingOfRuns(base, *partner, cell);
    NoteHostsLeftOut(*test.record, pairing, report);
    if (pairing.agents.empty()) continue;
    ForEachScope(test, pairing, [&](const Pairing& one) { AddComparedRows(test, one, drafts); });
  }
  for (const CellView& cell : base.cells) {
    if (test.Find(cell.stack(), cell) == nullptr) {
      Skip(cell, "unsupported", "only in the base run", report);
    }
  }
  Finish(std::move(drafts), report);
}

}  // namespace labrack::compare
