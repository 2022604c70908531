// What run, wait and watch share: a run followed on a view, and the exit code of how that ended.
#pragma once

#include <functional>
#include <string>

#include "controller/cli/follow.h"
#include "controller/cli/records.h"
#include "controller/cli/verb.h"

namespace labrack::cli {

// Follows a run on the view that --progress asks for, else on `progress` ("auto", "none"). `hint`
// is the live view's last line.
FollowResult FollowOnView(const Call& call, Client& client, const FollowOptions& options,
                          const std::string& progress, const std::string& hint,
                          Interrupts& interrupts);

struct Ending {
  std::function<ExitCode()> judge;  // asked about a run that has ended
  std::string goes_on;              // said of a run that goes on without us
};
// Says how the following ended and gives the exit code for it.
ExitCode Conclude(const Call& call, const FollowResult& followed, const Interrupts& interrupts,
                  const Ending& ending);

// The verdict of an ended run whose report could not be made, from what the controller keeps of
// it: a run that passed does not fail because its table is late. What --strict asks is in the table
// only.
ExitCode JudgeWithoutTable(const Call& call, const v1::RunSummary& run, const Error& why);

// Of wait and watch: follows the run that the first operand names, without touching it. Where there
// is no controller it has ended, or it is said that it will not. `judge` is asked about it when it
// has ended.
struct Onlooking {
  std::optional<Nanoseconds> limit = {};
  std::string progress = "auto";
  std::string hint = {};
  std::function<ExitCode(Records&, const v1::RunSummary&)> judge = {};
};
ExitCode LookOn(const Call& call, const Onlooking& onlooking);

// The word as a shell takes it: in quotes where it must be.
std::string ShellWord(const std::string& word);

// " --controller ADDR" or " --state DIR" as the user wrote it, for commands that we suggest.
std::string AddressWords(const Call& call);

}  // namespace labrack::cli
