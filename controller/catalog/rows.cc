#include "controller/catalog/rows.h"

#include <array>
#include <utility>

namespace labrack::catalog {
namespace {

template <typename State, std::size_t kSize>
using Names = std::array<std::pair<State, std::string_view>, kSize>;

constexpr Names<AssignmentState, 8> kAssignmentNames{{
    {AssignmentState::kPlanned, "planned"},
    {AssignmentState::kOffered, "offered"},
    {AssignmentState::kAccepted, "accepted"},
    {AssignmentState::kRunning, "running"},
    {AssignmentState::kClosed, "closed"},
    {AssignmentState::kRefused, "refused"},
    {AssignmentState::kAbandoned, "abandoned"},
    {AssignmentState::kCancelled, "cancelled"},
}};
constexpr Names<TrialState, 6> kTrialNames{{
    {TrialState::kPlanned, "planned"},
    {TrialState::kRunning, "running"},
    {TrialState::kValid, "valid"},
    {TrialState::kInvalid, "invalid"},
    {TrialState::kLost, "lost"},
    {TrialState::kCancelled, "cancelled"},
}};
constexpr Names<v1::RunState, 6> kRunNames{{
    {v1::RUN_STATE_PENDING, "pending"},
    {v1::RUN_STATE_RUNNING, "running"},
    {v1::RUN_STATE_CANCELLING, "cancelling"},
    {v1::RUN_STATE_DONE, "done"},
    {v1::RUN_STATE_CANCELLED, "cancelled"},
    {v1::RUN_STATE_FAILED, "failed"},
}};

template <typename State, std::size_t kSize>
std::string_view NameOf(const Names<State, kSize>& names, State state) {
  for (const auto& [value, name] : names) {
    if (value == state) return name;
  }
  return "unknown";
}

template <typename State, std::size_t kSize>
std::optional<State> StateOf(const Names<State, kSize>& names, std::string_view wanted) {
  for (const auto& [value, name] : names) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view StateName(AssignmentState state) { return NameOf(kAssignmentNames, state); }
std::string_view StateName(TrialState state) { return NameOf(kTrialNames, state); }
std::string_view StateName(v1::RunState state) { return NameOf(kRunNames, state); }

std::optional<AssignmentState> AssignmentStateFrom(std::string_view name) {
  return StateOf(kAssignmentNames, name);
}
std::optional<TrialState> TrialStateFrom(std::string_view name) {
  return StateOf(kTrialNames, name);
}
std::optional<v1::RunState> RunStateFrom(std::string_view name) { return StateOf(kRunNames, name); }

}  // namespace labrack::catalog
