#include "controller/cli/live_view.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "controller/report/lists.h"
#include "controller/report/style.h"
#include "storage/base/units.h"

namespace labrack::cli {
namespace {

constexpr std::size_t kHostLinesMax = 8;
constexpr std::size_t kHealthyLinesMax = 3;
constexpr std::size_t kOtherLines = 6;  // head, fleet, table head, fold, trials, hint
constexpr std::size_t kHostsForMedian = 3;
// A host whose p99 lies so far above the fleet's median is worth a look.
constexpr double kSlowFactor = 1.5;
constexpr std::array<std::size_t, 3> kBarWidths = {20, 10, 0};
// Below this width the curve gives way to the notes.
constexpr std::size_t kColumnsForCurve = 96;
constexpr std::size_t kStackMarksMax = 12;

std::size_t Width(const LiveOptions& options) {
  return std::min(report::kColumnsMax, options.size.columns);
}

bool HasCurve(const LiveOptions& options) { return Width(options) >= kColumnsForCurve; }

// At most `width` columns, without blanks at the end.
std::string Fitted(std::string text, std::size_t width) {
  while (text.ends_with(' ')) text.pop_back();
  return report::Clipped(text, width);
}

std::string Bar(double fraction, std::size_t width) {
  const double share = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  const std::string bar = width == 0 ? ""
                                     : fmt::format("[{}{}] ", std::string(filled, '#'),
                                                   std::string(width - filled, '.'));
  return fmt::format("{}{:.0f} %", bar, share * 100);
}

// The phase that most hosts are in; of equal ones the earlier, since it is what is waited for.
v1::PhaseKind CommonPhase(const RunState& state) {
  std::map<v1::PhaseKind, int> counts;
  for (const auto& [id, host] : state.hosts()) {
    if (host.last.has_progress()) ++counts[host.last.progress().phase()];
  }
  const auto most = std::ranges::max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? v1::PHASE_UNSPECIFIED : most->first;
}

// The host that is furthest behind in that phase says how far the trial is.
const v1::AssignmentProgress* Slowest(const RunState& state, v1::PhaseKind phase) {
  const v1::AssignmentProgress* slowest = nullptr;
  for (const auto& [id, host] : state.hosts()) {
    if (!host.last.has_progress() || host.last.progress().phase() != phase) continue;
    const v1::AssignmentProgress& progress = host.last.progress();
    if (slowest == nullptr || progress.phase_elapsed_ns() < slowest->phase_elapsed_ns()) {
      slowest = &progress;
    }
  }
  return slowest;
}

// "measure 00:38/01:00 [####......] 63 %".
std::string PhaseText(const RunState& state, std::size_t bar_width) {
  const v1::PhaseKind phase = CommonPhase(state);
  const v1::AssignmentProgress* slowest = Slowest(state, phase);
  if (state.ended() || slowest == nullptr || phase == v1::PHASE_UNSPECIFIED) return "";
  std::string text = fmt::format("  {} {}", PhaseWord(phase),
                                 FormatElapsed(Nanoseconds(slowest->phase_elapsed_ns())));
  if (slowest->phase_total_ns() > 0) {
    text += fmt::format("/{}", FormatElapsed(Nanoseconds(slowest->phase_total_ns())));
  }
  if (slowest->fraction() >= 0) text += fmt::format(" {}", Bar(slowest->fraction(), bar_width));
  return text;
}

std::string HeadLine(const RunState& state, std::size_t width) {
  const v1::RunSummary& run = state.summary();
  std::string begin = fmt::format("{} {}", run.run_id(), report::Printable(run.playbook_name()));
  if (run.state() != v1::RUN_STATE_RUNNING)
    begin += fmt::format("  {}", report::FormatRunState(run.state()));
  const bool under_way =
      run.state() == v1::RUN_STATE_RUNNING || run.state() == v1::RUN_STATE_CANCELLING;
  if (run.trials_total() > 0 && under_way) {
    const std::uint32_t shown = std::min(run.current_trial() + 1, run.trials_total());
    begin += fmt::format("  trial {}/{}", shown, run.trials_total());
    if (!run.current_cell().empty())
      begin += fmt::format(" ({})", report::Printable(run.current_cell()));
  }
  std::string end;
  if (run.eta_ns() > 0) {
    const Nanoseconds whole_seconds =
        std::chrono::ceil<std::chrono::seconds>(Nanoseconds(run.eta_ns()));
    end = fmt::format("  ETA {}", FormatElapsed(whole_seconds));
  }
  // The bar gives way before a figure is cut.
  std::string line;
  for (const std::size_t bar_width : kBarWidths) {
    line = begin + PhaseText(state, bar_width) + end;
    if (line.size() <= width) break;
  }
  return line;
}

std::string FleetLine(const RunState& state, TimePoint now) {
  std::map<v1::PhaseKind, int> phases;
  std::map<std::string, int> sessions;
  int idle = 0;
  double operations = 0;
  bool sampled = false;
  for (const auto& [id, host] : state.hosts()) {
    if (!host.online()) {
      std::string word = report::Printable(host.last.session_state());
      std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
      ++sessions[word];
    } else if (host.last.has_progress()) {
      ++phases[host.last.progress().phase()];
    } else {
      ++idle;
    }
    if (host.has_sample() && host.Age(now) < kStaleAfter) {
      operations += host.last.progress().operations_per_second();
      sampled = true;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [phase, count] : phases) {
    parts.push_back(fmt::format("{} {}", count, PhaseWord(phase)));
  }
  if (idle > 0) parts.push_back(fmt::format("{} idle", idle));
  for (const auto& [session, count] : sessions) {
    parts.push_back(fmt::format("{} {}", count, session));
  }
  std::string line = fmt::format("fleet {}: {}", state.hosts().size(), fmt::join(parts, ", "));
  if (const auto skew = state.SkewMax()) line += fmt::format("   skew {}", FormatDuration(*skew));
  if (const auto overlap = state.OverlapMin()) {
    line += fmt::format("   overlap {:.1f} %", *overlap * 100);
  }
  if (sampled) line += fmt::format("   {} op/s", FormatCount(operations));
  return line;
}

struct HostRow {
  const HostState* host = nullptr;
  int rank = 0;  // lower is worse
  double factor = 0;
  std::string note = {};
};

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double MedianP99(const RunState& state, TimePoint now) {
  std::vector<double> values;
  for (const auto& [id, host] : state.hosts()) {
    if (host.has_sample() && host.Age(now) < kStaleAfter) {
      values.push_back(static_cast<double>(host.last.progress().p99_ns()));
    }
  }
  return values.size() < kHostsForMedian ? 0 : MedianOf(values);
}

HostRow Judge(const HostState& host, TimePoint now, v1::PhaseKind common, double median_p99) {
  HostRow row{.host = &host, .rank = 4};
  const std::string age =
      FormatDurationExact(std::chrono::floor<std::chrono::seconds>(host.Age(now)));
  if (!host.online()) {
    row.rank = host.last.session_state() == "SUSPECT" ? 1 : 0;
    row.note = fmt::format("{} for {}", report::Printable(host.last.session_state()), age);
    std::ranges::transform(row.note, row.note.begin(),
                           [](unsigned char c) { return std::tolower(c); });
    return row;
  }
  if (host.Age(now) >= kStaleAfter) {
    row.rank = 2;
    row.note = fmt::format("data {} old", age);
    return row;
  }
  if (host.has_sample() && median_p99 > 0) {
    row.factor = static_cast<double>(host.last.progress().p99_ns()) / median_p99;
    if (row.factor >= kSlowFactor) {
      row.rank = 3;
      row.note = fmt::format("p99 {:.1f}x fleet median", row.factor);
      return row;
    }
  }
  const bool apart = host.last.has_progress() && host.last.progress().phase() != common;
  if (apart) row.rank = 3;
  return row;
}

std::vector<HostRow> RankHosts(const RunState& state, TimePoint now) {
  const v1::PhaseKind common = CommonPhase(state);
  const double median = MedianP99(state, now);
  std::vector<HostRow> rows;
  for (const auto& [id, host] : state.hosts()) rows.push_back(Judge(host, now, common, median));
  std::ranges::sort(rows, [](const HostRow& a, const HostRow& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.factor != b.factor) return a.factor > b.factor;
    return a.host->last.agent_id() < b.host->last.agent_id();
  });
  return rows;
}

std::string Curve(const HostState& host, TimePoint now, bool utf8) {
  static constexpr std::array<const char*, 5> kPlainMarks = {"_", ".", "-", "=", "#"};
  static constexpr std::array<const char*, 5> kBlockMarks = {"▁", "▂", "▄", "▆", "█"};
  const auto slots = host.p99.Slots(now);
  const std::int64_t worst = *std::ranges::max_element(slots);
  std::string curve;
  for (const std::int64_t slot : slots) {
    if (slot == 0) {
      curve += ' ';
      continue;
    }
    const auto level = static_cast<std::size_t>(slot * 4 / worst);
    curve += utf8 ? kBlockMarks[level] : kPlainMarks[level];
  }
  return curve;
}

std::string Microseconds(std::int64_t ns) {
  return ns == 0 ? "-" : FormatGrouped(static_cast<double>(ns) / 1e3);
}

ViewLine HostLine(const HostRow& row, TimePoint now, const LiveOptions& options,
                  std::size_t name_width) {
  const HostState& host = *row.host;
  const v1::AssignmentProgress& progress = host.last.progress();
  const bool sampled = host.has_sample();
  const std::string phase = host.last.has_progress() ? PhaseWord(progress.phase()) : "-";
  const std::string rate = sampled ? FormatGrouped(progress.operations_per_second()) : "-";
  const std::string bytes =
      sampled ? FormatGrouped(progress.bytes_per_second() / (1024.0 * 1024.0)) : "-";
  ViewLine line;
  line.text = fmt::format("{:<{}}  {:<9} {:>9} {:>7} {:>8} {:>8}  {}{}",
                          Fitted(report::Printable(host.last.agent_id()), name_width), name_width,
                          phase, rate, bytes, Microseconds(sampled ? progress.p50_ns() : 0),
                          Microseconds(sampled ? progress.p99_ns() : 0),
                          HasCurve(options) ? Curve(host, now, options.utf8) + "  " : "", row.note);
  if (row.rank <= 1) line.ink = report::Ink::kBad;
  if (row.rank == 2) line.ink = report::Ink::kDim;
  return line;
}

// "5 more within 4 % of the median".
std::string FoldLine(const std::vector<HostRow>& folded, std::size_t indent) {
  std::vector<double> rates;
  for (const HostRow& row : folded) {
    if (row.host->has_sample()) {
      rates.push_back(row.host->last.progress().operations_per_second());
    }
  }
  std::string line = fmt::format("{:{}}  {} more", "", indent, folded.size());
  const double median = MedianOf(rates);
  if (rates.size() == folded.size() && rates.size() > 1 && median > 0) {
    double apart = 0;
    for (const double rate : rates) apart = std::max(apart, std::abs(rate / median - 1));
    line += fmt::format(" within {:.0f} % of their median", std::ceil(apart * 100));
  }
  return line;
}

void AddHosts(const RunState& state, TimePoint now, const LiveOptions& options,
              std::vector<ViewLine>& lines) {
  if (state.hosts().empty()) return;
  const std::vector<HostRow> rows = RankHosts(state, now);
  const std::size_t room =
      options.size.rows > kOtherLines + 2 ? options.size.rows - kOtherLines - 1 : std::size_t{1};
  const auto worrying = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const HostRow& row) { return row.rank < 4; }));
  const std::size_t wanted = std::max(worrying, std::min(rows.size(), kHealthyLinesMax));
  const std::size_t shown = std::min({wanted, kHostLinesMax, room});

  std::size_t name_width = 4;
  for (std::size_t i = 0; i < shown; ++i) {
    name_width = std::max(name_width, rows[i].host->last.agent_id().size());
  }
  name_width = std::min<std::size_t>(name_width, 16);
  lines.push_back(
      {fmt::format("{:<{}}  {:<9} {:>9} {:>7} {:>8} {:>8}  {}NOTE", "HOST", name_width, "PHASE",
                   "OP/S", "MiB/s", "p50 us", "p99 us", HasCurve(options) ? "p99 60 s    " : ""),
       report::Ink::kBold});
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(HostLine(rows[i], now, options, name_width));
  }
  const std::vector<HostRow> folded(rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end());
  if (!folded.empty()) lines.push_back({FoldLine(folded, name_width), report::Ink::kDim});
}

// How the trials of one stack went: '#' valid, 'x' not, '>' under way.
std::string StackMarks(const std::vector<const v1::TrialSummary*>& trials) {
  std::string marks;
  for (const v1::TrialSummary* trial : trials) {
    if (trial->state() == "planned") continue;
    marks += trial->state() == "valid" ? '#' : trial->state() == "running" ? '>' : 'x';
  }
  if (marks.size() <= kStackMarksMax) return marks;
  const auto valid = std::ranges::count(marks, '#');
  const auto bad = std::ranges::count(marks, 'x');
  return bad == 0 ? fmt::format("{}", valid) : fmt::format("{} ({} not valid)", valid, bad);
}

std::string TrialsLine(const RunState& state) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const v1::TrialSummary*>> by_stack;
  for (const auto& [index, trial] : state.trials()) {
    const std::string stack = trial.cell_name().substr(0, trial.cell_name().find('/'));
    if (!by_stack.contains(stack)) order.push_back(stack);
    by_stack[stack].push_back(&trial);
  }
  std::string line = "TRIALS";
  for (const std::string& stack : order) {
    const std::string marks = StackMarks(by_stack[stack]);
    line += fmt::format("  {} {}", report::Printable(stack), marks.empty() ? "-" : marks);
  }
  const v1::RunSummary& run = state.summary();
  const std::uint32_t left = run.trials_total() - std::min(run.trials_done(), run.trials_total());
  line += fmt::format("   left {} of {}", left, run.trials_total());
  if (const v1::TrialSummary* last = state.last_ended()) {
    line += fmt::format("   last: trial {} {} {}", last->index() + 1,
                        report::Printable(last->cell_name()), last->state());
    if (!last->reason().empty()) line += fmt::format(": {}", report::Printable(last->reason()));
  }
  return line;
}

}  // namespace

std::string FormatElapsed(Nanoseconds elapsed) {
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(elapsed).count();
  if (seconds < 3600) return fmt::format("{:02}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string FormatGrouped(double value) {
  if (!std::isfinite(value) || value < 0) return "-";
  if (value > 0 && value < 10) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, " ");
  return digits;
}

std::vector<ViewLine> LiveLines(const RunState& state, TimePoint now, const LiveOptions& options) {
  std::vector<ViewLine> lines;
  lines.push_back({HeadLine(state, Width(options)), report::Ink::kBold});
  // What hosts last said is no news once the run has ended.
  if (!state.ended()) {
    lines.push_back(
        {state.hosts().empty() ? "fleet: no host has reported yet" : FleetLine(state, now)});
    AddHosts(state, now, options, lines);
  }
  if (!state.trials().empty()) lines.push_back({TrialsLine(state)});
  if (!options.hint.empty()) lines.push_back({options.hint, report::Ink::kDim});
  // One line less than the terminal has, so that drawing never scrolls.
  const std::size_t lines_max = std::max<std::size_t>(1, options.size.rows - 1);
  if (lines.size() > lines_max) lines.resize(lines_max);
  for (ViewLine& line : lines) line.text = Fitted(line.text, Width(options));
  return lines;
}

std::string Paint(const std::vector<ViewLine>& lines, bool colour) {
  std::string out;
  for (const ViewLine& line : lines) {
    out += report::Inked(line.text, line.ink, {.colour = colour}) + '\n';
  }
  return out;
}

}  // namespace labrack::cli
