#include "controller/compare/gates.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "storage/base/units.h"

namespace labrack::compare {
namespace {

constexpr double kPercentileDefault = 0.99;

// In order of weight: the worst part decides the gate.
enum class GateOutcome { kPassed, kInconclusive, kInvalid, kFailed };

const char* OutcomeName(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::kPassed:
      return "PASSED";
    case GateOutcome::kInconclusive:
      return "INCONCLUSIVE";
    case GateOutcome::kInvalid:
      return "INVALID";
    case GateOutcome::kFailed:
      return "FAILED";
  }
  return "INVALID";
}

struct Finding {
  GateOutcome outcome = GateOutcome::kInvalid;
  std::string detail;
};

Finding Found(GateOutcome outcome, std::string detail) { return {outcome, std::move(detail)}; }

// Where the ratio of speeds must lie, and where it must not.
struct Claim {
  double low = 0;
  double high = INFINITY;
};

double WithinOf(const v1::Gate& gate, const v1::Playbook& playbook) {
  return gate.within() > 0 ? gate.within() : playbook.margin();
}

double ByOf(const v1::Gate& gate, const v1::Playbook& playbook) {
  return gate.by() > 0 ? gate.by() : 1 + playbook.margin();
}

double PercentileOf(const v1::Gate& gate) {
  return gate.percentile() > 0 ? gate.percentile() : kPercentileDefault;
}

std::string Percent(double share) { return fmt::format("{:g} %", std::round(share * 1e6) / 1e4); }

Finding JudgeInterval(const Claim& claim, double ratio, const Interval& interval,
                      std::size_t trials) {
  const std::string figures = fmt::format("{:.3f}x, 95 % interval {:.3f}x to {:.3f}x, {} trials",
                                          ratio, interval.low, interval.high, trials);
  if (interval.low >= claim.low && interval.high <= claim.high) {
    return Found(GateOutcome::kPassed, figures);
  }
  if (interval.high < claim.low || interval.low > claim.high) {
    return Found(GateOutcome::kFailed, figures);
  }
  const double bound = interval.low < claim.low ? claim.low : claim.high;
  return Found(GateOutcome::kInconclusive,
               fmt::format("{}; the interval holds {:.3g}x", figures, bound));
}

Finding TooFew(std::size_t trials) {
  return Found(GateOutcome::kInconclusive,
               fmt::format("{} valid {} of a kind; a gate needs {}, better 6", trials,
                           trials == 1 ? "trial" : "trials", kVerdictTrialsMin));
}

// One pair of cells and step; `agents` not empty.
Finding JudgeSpeed(const RunView& run, const CellView& subject, const CellView& other,
                   const std::string& step, const std::vector<std::string>& agents,
                   const Claim& claim) {
  const auto primary = [&](const CellView& cell) {
    MetricSeries found;
    for (MetricSeries& series : SeriesOf(cell, agents)) {
      if (series.step == step && series.metric.kind == MetricKind::kPrimary) {
        found = std::move(series);
        break;
      }
    }
    return found;
  };
  const MetricSeries mine = primary(subject);
  const MetricSeries theirs = primary(other);
  if (mine.series.empty() || theirs.series.empty()) {
    return Found(GateOutcome::kInvalid,
                 "no valid trial of " +
                     (mine.series.empty() ? CellName(*subject.cell) : CellName(*other.cell)));
  }
  const std::size_t trials = std::min(mine.series.size(), theirs.series.size());
  if (trials < kVerdictTrialsMin) return TooFew(trials);
  const Seed seed = Derive(Derive(Seed{run.record->plan().seed()}, "gate"),
                           CellName(*subject.cell) + "\n" + CellName(*other.cell) + "\n" + step);
  const Judgement judgement = Judge(theirs.series, mine.series, seed);
  if (!mine.metric.lower_is_better) {
    return JudgeInterval(claim, judgement.ratio, judgement.interval, judgement.trials);
  }
  return JudgeInterval(claim, 1 / judgement.ratio,
                       {1 / judgement.interval.high, 1 / judgement.interval.low}, judgement.trials);
}

Finding JudgeLatency(const RunView& run, const v1::Gate& gate, const CellView& cell,
                     const std::string& step, const std::vector<std::string>& agents) {
  const MetricSeries series = LatencySeries(cell, step, agents, PercentileOf(gate));
  if (series.missing > 0) {
    return Found(
        GateOutcome::kInconclusive,
        fmt::format("{} of {} trials have no {}: {}", series.missing,
                    series.missing + series.series.size(), series.metric.name, series.why_missing));
  }
  if (series.series.size() < kVerdictTrialsMin) return TooFew(series.series.size());
  std::vector<double> values;
  for (const TrialValue& trial : series.series) values.push_back(trial.value);
  const Seed seed = Derive(Derive(Seed{run.record->plan().seed()}, "gate latency"),
                           CellName(*cell.cell) + "\n" + step);
  const Interval interval = MedianInterval(values, seed);
  const auto text = [](double ns) {
    return FormatDuration(Nanoseconds(static_cast<std::int64_t>(std::llround(ns))));
  };
  const std::string figures =
      fmt::format("{} is {}, 95 % interval {} to {}, {} trials", series.metric.name,
                  text(Median(values)), text(interval.low), text(interval.high), values.size());
  const auto below = static_cast<double>(gate.below());
  if (interval.high < below) return Found(GateOutcome::kPassed, figures);
  if (interval.low >= below) return Found(GateOutcome::kFailed, figures);
  return Found(GateOutcome::kInconclusive, figures + "; the interval holds " + text(below));
}

// A trial that never got as far as verifying shows nothing; one that was not asked to is said.
Finding JudgeVerified(const RunView& run) {
  std::uint32_t matched = 0;
  std::uint32_t not_asked = 0;
  std::uint32_t not_possible = 0;
  std::uint32_t unknown = 0;
  std::string mismatch;
  for (const TrialView& view : run.trials) {
    const bool ended = view.assessment.exclusion != Exclusion::kPending;
    if (view.trial->assignments().empty() || !ended) ++unknown;
    for (const v1::AssignmentRecord& assignment : view.trial->assignments()) {
      switch (assignment.result().verified()) {
        case v1::VERIFY_OUTCOME_MATCHED:
          ++matched;
          break;
        case v1::VERIFY_OUTCOME_MISMATCHED:
          mismatch = fmt::format("trial {} ({}) on {}: {}", view.trial->summary().index() + 1,
                                 CellName(*view.cell), assignment.host_name(),
                                 assignment.result().verify_detail());
          break;
        case v1::VERIFY_OUTCOME_NOT_ASKED:
          ++not_asked;
          break;
        case v1::VERIFY_OUTCOME_NOT_POSSIBLE:
          ++not_possible;
          break;
        default:
          ++unknown;
      }
    }
  }
  if (!mismatch.empty()) return Found(GateOutcome::kFailed, mismatch);
  std::string detail = fmt::format("{} results read back right", matched);
  if (not_asked > 0) detail += fmt::format(", {} not asked for (verify: none)", not_asked);
  if (not_possible > 0) detail += fmt::format(", {} cannot be verified (exec, fio)", not_possible);
  if (unknown > 0) {
    return Found(GateOutcome::kInconclusive,
                 detail + fmt::format(", {} never got as far as verifying", unknown));
  }
  if (matched == 0) return Found(GateOutcome::kInvalid, "nothing was verified: " + detail);
  return Found(GateOutcome::kPassed, detail);
}

// Agents that a gate is about: all, or the one whose host or agent is named.
std::vector<std::string> Only(const RunView& run, const std::vector<std::string>& agents,
                              const std::string& host) {
  if (host.empty()) return agents;
  for (const std::string& agent : agents) {
    if (agent == host || HostNameOf(*run.record, agent) == host) return {agent};
  }
  return {};
}

// "pages" and "files/create" both name a part of the workload before the slash.
bool IsOn(const std::string& on, const CellView& cell, const std::string& step) {
  return on.empty() || on == cell.workload() || on == cell.workload() + "/" + step;
}

bool MayBeOn(const std::string& on, const CellView& cell) {
  return on.empty() || on == cell.workload() || on.starts_with(cell.workload() + "/");
}

// Parts of a gate, judged one by one; the worst decides, and all say their figures.
class Parts {
 public:
  void Add(const std::string& where, const Finding& finding) {
    ++count_;
    if (count_ == 1 || finding.outcome > outcome_) outcome_ = finding.outcome;
    details_.push_back({where, finding});
  }
  bool empty() const { return count_ == 0; }

  Finding Total() const {
    if (details_.size() == 1) return details_.front().second;
    std::string detail;
    for (const auto& [where, finding] : details_) {
      detail += fmt::format("{}{}: {} ({})", detail.empty() ? "" : "; ", where,
                            OutcomeName(finding.outcome), finding.detail);
    }
    return {outcome_, detail};
  }

 private:
  int count_ = 0;
  GateOutcome outcome_ = GateOutcome::kPassed;
  std::vector<std::pair<std::string, Finding>> details_;
};

std::string PartName(const CellView& cell, const std::string& step) {
  std::string name = cell.workload() + "/" + step;
  return cell.parameters().empty() ? name : name + " " + cell.parameters();
}

const CellView* Partner(const RunView& run, const std::string& stack, const CellView& like) {
  for (const CellView& cell : run.cells) {
    if (cell.stack() == stack && cell.workload() == like.workload() &&
        cell.parameters() == like.parameters()) {
      return &cell;
    }
  }
  return nullptr;
}

Finding JudgeAgainst(const RunView& run, const v1::Gate& gate, const std::string& subject,
                     const std::string& other, const Claim& claim) {
  Parts parts;
  for (const CellView& cell : run.cells) {
    if (cell.stack() != subject || !MayBeOn(gate.on(), cell)) continue;
    const CellView* partner = Partner(run, other, cell);
    if (partner == nullptr) {
      parts.Add(CellName(*cell.cell),
                Found(GateOutcome::kInvalid,
                      fmt::format("there is no cell of {} to compare with", other)));
      continue;
    }
    const std::vector<std::string> agents =
        Only(run, CommonAgents(*cell.cell, *partner->cell), gate.host());
    std::vector<std::string> steps = StepsOf(cell);
    if (steps.empty()) steps = StepsOf(*partner);
    if (agents.empty() || steps.empty()) {
      parts.Add(
          CellName(*cell.cell),
          Found(GateOutcome::kInvalid,
                agents.empty() ? "no host ran both" : "no valid trial of " + CellName(*cell.cell)));
      continue;
    }
    for (const std::string& step : steps) {
      if (!IsOn(gate.on(), cell, step)) continue;
      parts.Add(PartName(cell, step), JudgeSpeed(run, cell, *partner, step, agents, claim));
    }
  }
  if (parts.empty()) {
    return Found(GateOutcome::kInvalid, fmt::format("no cell of {} measured {}", subject,
                                                    gate.on().empty() ? "anything" : gate.on()));
  }
  return parts.Total();
}

Finding JudgeLatencyGate(const RunView& run, const v1::Gate& gate) {
  Parts parts;
  for (const CellView& cell : run.cells) {
    if (cell.stack() != gate.latency() || !MayBeOn(gate.on(), cell)) continue;
    const std::vector<std::string> agents =
        Only(run, {cell.cell->agent_ids().begin(), cell.cell->agent_ids().end()}, gate.host());
    const std::vector<std::string> steps = StepsOf(cell);
    if (agents.empty() || steps.empty()) {
      parts.Add(CellName(*cell.cell), Found(GateOutcome::kInvalid, "no valid trial"));
      continue;
    }
    for (const std::string& step : steps) {
      if (!IsOn(gate.on(), cell, step)) continue;
      parts.Add(PartName(cell, step), JudgeLatency(run, gate, cell, step, agents));
    }
  }
  if (parts.empty()) {
    return Found(GateOutcome::kInvalid, fmt::format("no cell of {} measured {}", gate.latency(),
                                                    gate.on().empty() ? "anything" : gate.on()));
  }
  return parts.Total();
}

Finding JudgeGate(const RunView& run, const v1::Gate& gate) {
  const v1::Playbook& playbook = run.record->plan().playbook();
  if (!gate.faster().empty()) {
    return JudgeAgainst(run, gate, gate.faster(), gate.than(), {.low = ByOf(gate, playbook)});
  }
  if (!gate.not_slower().empty()) {
    return JudgeAgainst(run, gate, gate.not_slower(), gate.than(),
                        {.low = 1 - WithinOf(gate, playbook)});
  }
  if (!gate.same().empty()) {
    const double within = WithinOf(gate, playbook);
    return JudgeAgainst(run, gate, gate.same(), gate.as(), {.low = 1 - within, .high = 1 + within});
  }
  if (!gate.latency().empty()) return JudgeLatencyGate(run, gate);
  if (gate.verified() == v1::GATE_VERIFIED_ALL) return JudgeVerified(run);
  return Found(GateOutcome::kInvalid, "the gate claims nothing");
}

}  // namespace

std::string GateText(const v1::Gate& gate, const v1::Playbook& playbook) {
  std::string text;
  const std::string on = gate.on().empty() ? "" : " on " + gate.on();
  if (!gate.faster().empty()) {
    text = fmt::format("{} is faster than {}{} by {:g}x", gate.faster(), gate.than(), on,
                       ByOf(gate, playbook));
  } else if (!gate.not_slower().empty()) {
    text = fmt::format("{} is not slower than {}{} within {}", gate.not_slower(), gate.than(), on,
                       Percent(WithinOf(gate, playbook)));
  } else if (!gate.same().empty()) {
    text = fmt::format("{} is as fast as {}{} within {}", gate.same(), gate.as(), on,
                       Percent(WithinOf(gate, playbook)));
  } else if (!gate.latency().empty()) {
    text = fmt::format("p{:g} of {}{} is below {}", PercentileOf(gate) * 100, gate.latency(), on,
                       FormatDuration(Nanoseconds(gate.below())));
  } else {
    text = "all data was read back right";
  }
  return gate.host().empty() ? text : text + " on host " + gate.host();
}

void AddGates(const RunView& run, v1::Report& report) {
  const v1::Playbook& playbook = run.record->plan().playbook();
  for (int i = 0; i < playbook.gates_size(); ++i) {
    const Finding finding = JudgeGate(run, playbook.gates(i));
    v1::GateResult& gate = *report.add_gates();
    gate.set_index(static_cast<std::uint32_t>(i));
    gate.set_text(GateText(playbook.gates(i), playbook));
    gate.set_outcome(OutcomeName(finding.outcome));
    gate.set_detail(finding.detail);
  }
}

}  // namespace labrack::compare
