// Where progress goes: one of four views, chosen by --progress. All write to a file descriptor
// (standard error, but for `watch --json`) and never to where data goes.
#pragma once

#include <memory>
#include <string>

#include "controller/cli/run_state.h"
#include "controller/cli/terminal.h"

namespace labrack::cli {

enum class ProgressKind { kLive, kPlain, kJson, kNone };

// "auto" is live on a terminal that can move its cursor, else plain.
ProgressKind ChooseProgress(const std::string& wanted, const Terminal& terminal);

class ProgressView {
 public:
  virtual ~ProgressView() = default;
  virtual void OnEvent(const v1::RunEvent& event, TimePoint now) = 0;
  // Called at least twice a second.
  virtual void OnTick(TimePoint now) = 0;
  // A line for people that is no event: "connection lost; trying again".
  virtual void Say(const std::string& text) = 0;
  // The live view leaves its last picture; nothing is drawn after it.
  virtual void Finish(TimePoint now) = 0;

  const RunState& state() const { return state_; }

 protected:
  RunState state_;
};

// `hint` is the live view's last line.
std::unique_ptr<ProgressView> MakeProgressView(ProgressKind kind, int descriptor,
                                               const Terminal& terminal, std::string hint);

}  // namespace labrack::cli
