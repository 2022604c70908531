// What each agent has reported in its session, by assignment and token: how far the records are
// here without a gap. Only what goes on where the last batch ended is taken; the rest is neither
// stored nor acknowledged, so that the agent keeps it and sends it again after its next Hello.
//
//   Hello: Forget, then Know(what the catalog has)     Events: Take -> how many records to store
//
// A token that was not named after Hello begins at record 1. Pure, one thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "labrack/v1/fleet.pb.h"

namespace labrack::run {

// "RUN/TRIAL/AGENT" belongs to AGENT.
bool BelongsTo(const std::string& assignment_id, const std::string& agent_id);
// The id under which an agent's events are stored. What it reports about another agent's
// assignment (it was given a new name, say) is kept as well, but as "ID@REPORTER": it can never
// take the place of what the owner reports.
std::string EventsKey(const std::string& agent_id, const std::string& assignment_id);

struct ReportKey {
  std::string assignment_id;
  std::uint64_t epoch = 0;
  std::strong_ordering operator<=>(const ReportKey&) const = default;
};

class Reports {
 public:
  // Trials that one agent may report about in one session; it holds far fewer at once.
  static constexpr std::size_t kPerAgentMax = 1024;

  void Forget(const std::string& agent_id);
  void Forget(const std::string& agent_id, const ReportKey& key);
  void Know(const std::string& agent_id, const ReportKey& key, std::uint64_t through_seq);

  struct Taken {
    int count = 0;                  // of the batch's first records: to be stored
    std::uint64_t through_seq = 0;  // everything up to here is stored then; 0: nothing
  };
  Taken Take(const std::string& agent_id, const v1::Events& events);

 private:
  std::map<std::string, std::map<ReportKey, std::uint64_t>> through_;  // by agent
};

}  // namespace labrack::run
