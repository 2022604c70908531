#include "controller/cli/plain_view.h"

#include <algorithm>
#include <ctime>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "controller/report/lists.h"
#include "controller/report/style.h"

namespace labrack::cli {
namespace {

// Bare words as they are, all else in quotes, so that fields can be cut at blanks.
std::string Quoted(const std::string& text) {
  if (!text.empty() && !text.contains(' ') && !text.contains('"')) return report::Printable(text);
  std::string out = "\"";
  for (const char c : report::Printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string TrialLine(const v1::TrialSummary& trial) {
  std::string line = fmt::format("trial={} cell={} state={}", trial.index() + 1,
                                 Quoted(trial.cell_name()), Quoted(trial.state()));
  if (trial.state() == "valid" && trial.host_count() > 1) {
    line += fmt::format(" skew_ms={:.2f} overlap={:.4f}",
                        static_cast<double>(trial.start_skew_ns()) / 1e6, trial.overlap());
  }
  if (!trial.reason().empty()) line += fmt::format(" reason={}", Quoted(trial.reason()));
  return line;
}

std::string RunLine(const v1::RunSummary& run) {
  std::string line = fmt::format("state={}", report::FormatRunState(run.state()));
  if (run.trials_total() > 0) {
    line += fmt::format(" trials={}/{} valid={}", run.trials_done(), run.trials_total(),
                        run.trials_valid());
  }
  if (!run.verdict().empty()) line += fmt::format(" verdict={}", Quoted(run.verdict()));
  if (!run.reason().empty()) line += fmt::format(" reason={}", Quoted(run.reason()));
  return line;
}

}  // namespace

std::vector<std::string> NotesOf(const v1::RunEvent& event) {
  std::vector<std::string> notes;
  std::istringstream text(event.note());
  for (std::string line; std::getline(text, line);) {
    if (!line.empty()) notes.push_back(report::Printable(line));
  }
  return notes;
}

std::vector<std::string> PlainLines(const RunState& before, const RunState& after,
                                    const v1::RunEvent& event, std::string_view clock) {
  const v1::RunSummary& run = after.summary();
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text) {
    lines.push_back(fmt::format("{} {} {}", clock, run.run_id(), text));
  };
  for (const std::string& note : NotesOf(event)) add(fmt::format("note={}", Quoted(note)));
  for (const v1::TrialSummary& trial : event.trials()) {
    // A fresh plan has hundreds of planned trials; they are no news.
    if (trial.state() != "planned" && !before.IsOldNews(trial)) add(TrialLine(trial));
  }
  for (const v1::HostProgress& host : event.hosts()) {
    const auto known = before.hosts().find(host.agent_id());
    const std::string was =
        known == before.hosts().end() ? "ONLINE" : known->second.last.session_state();
    if (was != host.session_state()) {
      add(fmt::format("host={} session={}", Quoted(host.agent_id()), Quoted(host.session_state())));
    }
  }
  if (before.summary().state() != run.state()) add(RunLine(run));
  return lines;
}

std::string PlainHeartbeat(const RunState& state, TimePoint now, std::string_view clock) {
  const v1::RunSummary& run = state.summary();
  std::size_t online = 0;
  double operations = 0;
  std::int64_t p99 = 0;
  for (const auto& [id, host] : state.hosts()) {
    if (host.online()) ++online;
    if (!host.has_sample() || host.Age(now) >= kStaleAfter) continue;
    operations += host.last.progress().operations_per_second();
    p99 = std::max(p99, host.last.progress().p99_ns());
  }
  const std::uint32_t total = run.trials_total();
  std::string line = fmt::format("{} {} progress trial={}/{} pct={}", clock, run.run_id(),
                                 std::min(run.current_trial() + 1, total), total,
                                 total == 0 ? 0 : run.trials_done() * 100 / total);
  if (!run.current_cell().empty()) line += fmt::format(" cell={}", Quoted(run.current_cell()));
  // The worst host's p99: percentiles of hosts are never averaged.
  if (p99 > 0) {
    line += fmt::format(" ops={:.0f} p99_ms={:.3g}", operations, static_cast<double>(p99) / 1e6);
  }
  line += fmt::format(" hosts={}/{}", online, state.hosts().size());
  if (run.eta_ns() > 0) line += fmt::format(" eta_s={}", run.eta_ns() / 1'000'000'000);
  return line;
}

std::string ClockText(Nanoseconds wall) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall).count();
  return fmt::format("{:%H:%M:%S}", fmt::localtime(seconds));
}

}  // namespace labrack::cli
