#include "controller/compare/gates.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "proto/convert/names.h"
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

// A part of a gate that has figures: ruled once the chances of all parts are known.
struct Open {
  Judgement judgement;
  Claim claim;
  std::string figures;
};
using Part = std::variant<Finding, Open>;

Finding Found(GateOutcome outcome, std::string detail) { return {outcome, std::move(detail)}; }

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

Finding TooFew(std::size_t trials, std::size_t needed) {
  return Found(GateOutcome::kInconclusive,
               fmt::format("{} valid {} of a kind; this gate needs {}", trials,
                           trials == 1 ? "trial" : "trials", needed));
}

MetricSeries PrimaryOf(const CellView& cell, const std::string& step,
                       const std::vector<std::string>& agents) {
  for (MetricSeries& series : SeriesOf(cell, agents)) {
    if (series.step == step && series.metric.kind == MetricKind::kPrimary) return std::move(series);
  }
  return {};
}

// One pair of cells and step; `agents` not empty.
Part JudgeSpeed(const RunView& run, const CellView& subject, const CellView& other,
                const std::string& step, const std::vector<std::string>& agents,
                const Claim& claim) {
  const MetricSeries mine = PrimaryOf(subject, step, agents);
  const MetricSeries theirs = PrimaryOf(other, step, agents);
  const std::string my_name = convert::CellName(*subject.cell);
  const std::string their_name = convert::CellName(*other.cell);
  if (subject.valid == 0 || other.valid == 0) {
    return Found(GateOutcome::kInvalid,
                 "no valid trial of " + (subject.valid == 0 ? my_name : their_name));
  }
  const std::string why_not = WhyNotJudged(theirs, their_name, mine, my_name);
  if (!why_not.empty()) return Found(GateOutcome::kInconclusive, why_not);
  const std::size_t trials = std::min(mine.series.size(), theirs.series.size());
  if (trials < kVerdictTrialsMin) return TooFew(trials, kVerdictTrialsMin);
  const Seed seed = Derive(Derive(Seed{run.record->plan().seed()}, "gate"),
                           my_name + "\n" + their_name + "\n" + step);
  // Speeds: where lower is better, theirs over mine.
  const bool lower = mine.metric.lower_is_better;
  Judgement judgement = Judge(lower ? mine.series : theirs.series,
                              lower ? theirs.series : mine.series, Repeats::kShared, seed);
  std::string figures =
      fmt::format("{:.3f}x, 95 % interval {:.3f}x to {:.3f}x, {} trials", judgement.ratio,
                  judgement.interval.low, judgement.interval.high, judgement.trials);
  return Open{std::move(judgement), claim, std::move(figures)};
}

// One arm against a bound: its trials as pairs with a base that is the bound each time.
Part JudgeLatency(const v1::Gate& gate, const CellView& cell, const std::string& step,
                  const std::vector<std::string>& agents) {
  const MetricSeries series = LatencySeries(cell, step, agents, PercentileOf(gate));
  const std::string name = convert::CellName(*cell.cell);
  const std::string why_not = WhyNotJudged(series, name, series, name);
  if (!why_not.empty()) return Found(GateOutcome::kInconclusive, why_not);
  if (series.series.size() < kMedianTrialsMin) {
    return TooFew(series.series.size(), kMedianTrialsMin);
  }
  std::vector<double> values;
  for (const TrialValue& trial : series.series) values.push_back(trial.value);
  const auto bound = static_cast<double>(gate.below());
  const Interval interval = MedianInterval(values);
  Judgement judgement;
  judgement.arms = {.base = std::vector(values.size(), bound), .test = values, .paired = true};
  judgement.base_median = bound;
  judgement.median = Median(values);
  judgement.ratio = judgement.median / bound;
  judgement.interval = {interval.low / bound, interval.high / bound};
  judgement.base_trials = judgement.trials = values.size();
  judgement.paired = true;
  const auto text = [](double ns) {
    return FormatDuration(Nanoseconds(static_cast<std::int64_t>(std::llround(ns))));
  };
  std::string figures =
      fmt::format("{} is {}, 95 % interval {} to {}, {} trials", series.metric.name,
                  text(judgement.median), text(interval.low), text(interval.high), values.size());
  // Below, not at.
  return Open{std::move(judgement), GateClaim(0, std::nextafter(1.0, 0.0)), std::move(figures)};
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

bool IsAbout(const RunView& run, const v1::PlannedCell& cell, const std::string& host) {
  return host.empty() ||
         !Only(run, {cell.agent_ids().begin(), cell.agent_ids().end()}, host).empty();
}

// A trial that never got as far as verifying shows nothing; one that was not asked to is said.
Finding JudgeReadBack(const ReadBack& read_back) {
  if (!read_back.mismatch.empty()) return Found(GateOutcome::kFailed, read_back.mismatch);
  std::string detail = fmt::format("{} results read back right", read_back.matched);
  if (read_back.not_asked > 0) {
    detail += fmt::format(", {} not asked for (verify: none)", read_back.not_asked);
  }
  if (read_back.not_possible > 0) {
    detail += fmt::format(", {} cannot be verified (exec, fio)", read_back.not_possible);
  }
  if (read_back.unknown > 0) {
    return Found(GateOutcome::kInconclusive,
                 detail + fmt::format(", {} never got as far as verifying", read_back.unknown));
  }
  if (read_back.matched == 0) {
    return Found(GateOutcome::kInvalid, "nothing was verified: " + detail);
  }
  return Found(GateOutcome::kPassed, detail);
}

// "pages" and "files/create" both name a part of the workload before the slash.
bool IsOn(const std::string& on, const CellView& cell, const std::string& step) {
  return on.empty() || on == cell.workload() || on == cell.workload() + "/" + step;
}

bool MayBeOn(const std::string& on, const CellView& cell) {
  return on.empty() || on == cell.workload() || on.starts_with(cell.workload() + "/");
}

bool IsOutside(Place place) { return place == Place::kBelow || place == Place::kAbove; }

GateOutcome OutcomeOf(Place place) {
  if (place == Place::kInside) return GateOutcome::kPassed;
  return IsOutside(place) ? GateOutcome::kFailed : GateOutcome::kInconclusive;
}

// Parts of a gate; the worst decides, and all say their figures.
class Parts {
 public:
  void Add(const std::string& where, Part part) {
    places_.push_back(where);
    parts_.push_back(std::move(part));
  }
  bool empty() const { return parts_.empty(); }

  Finding Total() const {
    const std::vector<Finding> findings = RuleAll();
    if (findings.size() == 1) return findings.front();
    Finding total{GateOutcome::kPassed, ""};
    for (std::size_t i = 0; i < findings.size(); ++i) {
      total.outcome = std::max(total.outcome, findings[i].outcome);
      total.detail += fmt::format("{}{}: {} ({})", i == 0 ? "" : "; ", places_[i],
                                  OutcomeName(findings[i].outcome), findings[i].detail);
    }
    return total;
  }

 private:
  // One part suffices to fail a gate, so failures must hold among all parts (Holm). To pass, each
  // part must hold by itself.
  std::vector<Finding> RuleAll() const {
    std::vector<Chance> failing;
    for (const Part& part : parts_) {
      const Open* open = std::get_if<Open>(&part);
      if (open == nullptr) continue;
      const Place place = PlaceOf(open->judgement.interval, open->claim);
      failing.push_back(IsOutside(place) ? NullChance(*open, place) : Chance());
    }
    failing = HolmAdjusted(std::move(failing));
    std::vector<Finding> findings;
    std::size_t next = 0;
    for (const Part& part : parts_) {
      if (const Finding* finding = std::get_if<Finding>(&part)) {
        findings.push_back(*finding);
        continue;
      }
      findings.push_back(RuleOne(std::get<Open>(part), failing[next++], failing.size()));
    }
    return findings;
  }

  static Chance NullChance(const Open& open, Place place) {
    const Claim& claim = open.claim;
    const bool at_high = place == Place::kAbove || (place == Place::kInside && claim.low <= 0);
    return ChanceAt(open.judgement.arms, at_high ? claim.null_high : claim.null_low);
  }

  // Where the interval lies on neither side there is no bound to be by chance beyond of.
  static Finding RuleOne(const Open& open, const Chance& failing, std::size_t tests) {
    const Place place = PlaceOf(open.judgement.interval, open.claim);
    const bool outside = IsOutside(place);
    const Chance passing = place == Place::kInside ? NullChance(open, place) : Chance();
    const Ruling ruling =
        Rule(open.judgement, open.claim, outside ? failing : passing, outside ? tests : 1);
    const std::string reason = ruling.reason.empty() ? "" : "; " + ruling.reason;
    return {OutcomeOf(ruling.place), open.figures + reason};
  }

  std::vector<std::string> places_;
  std::vector<Part> parts_;
};

std::string PartName(const CellView& cell, const std::string& step) {
  std::string name = cell.workload() + "/" + step;
  return cell.parameters().empty() ? name : name + " " + cell.parameters();
}

// What a gate may be about as far as the plan says: a cell of its stack, and the hosts.
struct Subject {
  const CellView* cell = nullptr;
  const CellView* other = nullptr;  // of gates that compare; nullptr: there is none
  std::vector<std::string> agents = {};
};

const std::string& StackOf(const v1::Gate& gate) {
  if (!gate.faster().empty()) return gate.faster();
  if (!gate.not_slower().empty()) return gate.not_slower();
  return gate.same().empty() ? gate.latency() : gate.same();
}

const std::string& OtherOf(const v1::Gate& gate) {
  return gate.faster().empty() && gate.not_slower().empty() ? gate.as() : gate.than();
}

bool IsOfLatency(const v1::Gate& gate) {
  return gate.faster().empty() && gate.not_slower().empty() && gate.same().empty();
}

std::vector<Subject> SubjectsOf(const RunView& run, const v1::Gate& gate) {
  std::vector<Subject> subjects;
  if (StackOf(gate).empty()) return subjects;
  for (const CellView& cell : run.cells) {
    if (cell.stack() != StackOf(gate) || !MayBeOn(gate.on(), cell)) continue;
    Subject& subject = subjects.emplace_back(Subject{.cell = &cell});
    if (IsOfLatency(gate)) {
      subject.agents =
          Only(run, {cell.cell->agent_ids().begin(), cell.cell->agent_ids().end()}, gate.host());
      continue;
    }
    subject.other = run.Find(OtherOf(gate), cell);
    if (subject.other == nullptr) continue;
    subject.agents = Only(run, CommonAgents(*cell.cell, *subject.other->cell), gate.host());
  }
  return subjects;
}

Finding Total(const Parts& parts, const v1::Gate& gate) {
  if (!parts.empty()) return parts.Total();
  return Found(GateOutcome::kInvalid, fmt::format("no cell of {} measured {}", StackOf(gate),
                                                  gate.on().empty() ? "anything" : gate.on()));
}

Finding JudgeAgainst(const RunView& run, const v1::Gate& gate, const Claim& claim) {
  Parts parts;
  for (const Subject& subject : SubjectsOf(run, gate)) {
    const CellView& cell = *subject.cell;
    const std::string name = convert::CellName(*cell.cell);
    if (subject.other == nullptr) {
      parts.Add(name, Found(GateOutcome::kInvalid,
                            fmt::format("there is no cell of {} to compare with", OtherOf(gate))));
      continue;
    }
    const std::vector<std::string>& steps = cell.steps.empty() ? subject.other->steps : cell.steps;
    if (subject.agents.empty() || steps.empty()) {
      parts.Add(name,
                Found(GateOutcome::kInvalid,
                      subject.agents.empty() ? "no host ran both" : "no valid trial of " + name));
      continue;
    }
    for (const std::string& step : steps) {
      if (!IsOn(gate.on(), cell, step)) continue;
      parts.Add(PartName(cell, step),
                JudgeSpeed(run, cell, *subject.other, step, subject.agents, claim));
    }
  }
  return Total(parts, gate);
}

Finding JudgeLatencyGate(const RunView& run, const v1::Gate& gate) {
  Parts parts;
  for (const Subject& subject : SubjectsOf(run, gate)) {
    const CellView& cell = *subject.cell;
    if (subject.agents.empty() || cell.steps.empty()) {
      parts.Add(convert::CellName(*cell.cell), Found(GateOutcome::kInvalid, "no valid trial"));
      continue;
    }
    for (const std::string& step : cell.steps) {
      if (!IsOn(gate.on(), cell, step)) continue;
      parts.Add(PartName(cell, step), JudgeLatency(gate, cell, step, subject.agents));
    }
  }
  return Total(parts, gate);
}

bool IsOfReadBack(const v1::Gate& gate) {
  return StackOf(gate).empty() && gate.verified() == v1::GATE_VERIFIED_ALL;
}

Finding JudgeGate(const RunView& run, const v1::Gate& gate) {
  const v1::Playbook& playbook = run.record->plan().playbook();
  if (!gate.faster().empty()) {
    return JudgeAgainst(run, gate, GateClaim(ByOf(gate, playbook), INFINITY));
  }
  if (!gate.not_slower().empty()) {
    return JudgeAgainst(run, gate, GateClaim(1 - WithinOf(gate, playbook), INFINITY));
  }
  if (!gate.same().empty()) {
    const double within = WithinOf(gate, playbook);
    return JudgeAgainst(run, gate, GateClaim(1 - within, 1 + within));
  }
  if (!gate.latency().empty()) return JudgeLatencyGate(run, gate);
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

void ReadBack::Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial,
                   const std::string& host) {
  for (const v1::AssignmentRecord& assignment : trial.assignments()) {
    if (!host.empty() && assignment.agent_id() != host && assignment.host_name() != host) continue;
    switch (assignment.result().verified()) {
      case v1::VERIFY_OUTCOME_MATCHED:
        ++matched;
        break;
      case v1::VERIFY_OUTCOME_MISMATCHED:
        mismatch = fmt::format("trial {} ({}) on {}: {}", trial.summary().index() + 1,
                               convert::CellName(cell), assignment.host_name(),
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

Gates::Gates(RunView& run) : run_(run) {
  for (const v1::Gate& gate : run.record->plan().playbook().gates()) {
    if (IsOfReadBack(gate)) read_back_.try_emplace(gate.host());
    for (const Subject& subject : SubjectsOf(run, gate)) {
      if (subject.agents.empty()) continue;
      ScopeValues& values = run.Want(*subject.cell, subject.agents);
      if (IsOfLatency(gate)) values.percentiles.insert(PercentileOf(gate));
      if (subject.other != nullptr) run.Want(*subject.other, subject.agents);
    }
  }
}

void Gates::Add(const v1::PlannedCell& cell, const v1::TrialRecord& trial,
                const TrialAssessment& assessment) {
  for (auto& [host, read_back] : read_back_) {
    if (!IsAbout(run_, cell, host)) continue;
    const bool ended = assessment.exclusion != Exclusion::kPending;
    if (trial.assignments().empty() || !ended) ++read_back.unknown;
    read_back.Add(cell, trial, host);
  }
}

void Gates::AddTo(v1::Report& report) const {
  const v1::Playbook& playbook = run_.record->plan().playbook();
  for (int i = 0; i < playbook.gates_size(); ++i) {
    const v1::Gate& claim = playbook.gates(i);
    const Finding finding =
        IsOfReadBack(claim) ? JudgeReadBack(read_back_.at(claim.host())) : JudgeGate(run_, claim);
    v1::GateResult& gate = *report.add_gates();
    gate.set_index(static_cast<std::uint32_t>(i));
    gate.set_text(GateText(claim, playbook));
    gate.set_outcome(OutcomeName(finding.outcome));
    gate.set_detail(finding.detail);
  }
}

}  // namespace labrack::compare
