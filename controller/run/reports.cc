#include "controller/run/reports.h"

#include <algorithm>
#include <limits>

namespace labrack::run {

namespace {

// The catalog keeps numbers as signed ones; a token or a seq above this cannot be of ours.
constexpr auto kNumberMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

bool BelongsTo(const std::string& assignment_id, const std::string& agent_id) {
  return assignment_id.ends_with("/" + agent_id);
}

std::string EventsKey(const std::string& agent_id, const std::string& assignment_id) {
  // Names of agents contain no "@".
  return BelongsTo(assignment_id, agent_id) ? assignment_id : assignment_id + "@" + agent_id;
}

void Reports::Forget(const std::string& agent_id) { through_.erase(agent_id); }

void Reports::Forget(const std::string& agent_id, const ReportKey& key) {
  const auto agent = through_.find(agent_id);
  if (agent != through_.end()) agent->second.erase(key);
}

void Reports::Know(const std::string& agent_id, const ReportKey& key, std::uint64_t through_seq) {
  std::map<ReportKey, std::uint64_t>& known = through_[agent_id];
  if (known.size() < kPerAgentMax) known[key] = through_seq;
}

Reports::Taken Reports::Take(const std::string& agent_id, const v1::Events& events) {
  if (events.epoch() > kNumberMax || events.records().empty()) return {};
  std::map<ReportKey, std::uint64_t>& known = through_[agent_id];
  const ReportKey key{events.assignment_id(), events.epoch()};
  if (!known.contains(key) && known.size() >= kPerAgentMax) return {};
  std::uint64_t& through = known[key];
  Taken taken;
  std::uint64_t next = events.records(0).seq();
  if (next == 0 || next > through + 1) return {.count = 0, .through_seq = through};
  for (const v1::EventRecord& record : events.records()) {
    if (record.seq() != next || next > kNumberMax) break;
    ++next;
    ++taken.count;
  }
  through = std::max(through, next - 1);
  taken.through_seq = through;
  return taken;
}

}  // namespace labrack::run
