#include "controller/cli/following.h"

#include <fmt/format.h>

#include "controller/cli/progress.h"

namespace labrack::cli {
namespace {

// A catalog that is only looked at has no agents and starts none, so that a run which a killed lab
// left in it would be waited for in vain.
Result<void> CheckCanEnd(Lab& lab, const std::string& run) {
  if (!lab.embedded()) return {};
  const Result<v1::RunRecord> record = lab.client().ShowRun(run);
  if (!record) return std::unexpected(record.error());
  if (HasEnded(record->summary().state())) return {};
  return Fail(Errc::kUnavailable, run,
              "it will not end: the lab on this machine that ran it has ended before it; start it "
              "again with `labrack run PLAYBOOK`, which also cleans up what it left");
}

}  // namespace

FollowResult FollowOnView(const Call& call, Client& client, const FollowOptions& options,
                          const std::string& progress, const std::string& hint,
                          Interrupts& interrupts) {
  const Voice::Form& form = call.voice.form();
  const ProgressKind kind =
      form.json ? ProgressKind::kJson
                : ChooseProgress(call.arguments.Text("progress").value_or(progress), call.terminal);
  const std::unique_ptr<ProgressView> view =
      MakeProgressView(kind, form.descriptor, call.terminal, hint);
  return Follow(client, options, *view, interrupts);
}

ExitCode Conclude(const Call& call, const FollowResult& followed, const Interrupts& interrupts,
                  const Ending& ending) {
  if (followed.error) FailWith(call, *followed.error);
  switch (followed.end) {
    case FollowEnd::kRunEnded:
      return ending.judge();
    case FollowEnd::kNotCleanedUp:
      call.voice.Warn(
          fmt::format("not cleaned up within {} s; mounts, loop devices or files may be left",
                      std::chrono::floor<std::chrono::seconds>(followed.clean_up_limit).count()));
      [[fallthrough]];
    case FollowEnd::kInterrupted:
      return interrupts.exit_code();
    case FollowEnd::kTimedOut:
    case FollowEnd::kConnectionLost:
      call.voice.Say(ending.goes_on);
      return ExitCode::kWaitTimedOut;
    case FollowEnd::kFailed:
      break;
  }
  return ExitCodeOf(*followed.error);
}

ExitCode JudgeWithoutTable(const Call& call, const v1::RunSummary& run, const Error& why) {
  call.voice.Warn(fmt::format("the table could not be made: {}; next: labrack show {}{}",
                              why.ToString(), run.run_id(), AddressWords(call)));
  call.voice.Say(fmt::format("{}: {}", run.run_id(), run.verdict()));
  const ExitCode code = ExitCodeOfRun(run);
  if (code != ExitCode::kPassed || !call.arguments.Flag("strict")) return code;
  return FailWith(call, Error(Errc::kUnavailable, run.run_id(),
                              "without the table it is not known what --strict asks"));
}

ExitCode LookOn(const Call& call, const Onlooking& onlooking) {
  const std::string& run = call.arguments.Operand(0);
  Interrupts interrupts;
  interrupts.SayWhenForced([&call](ExitCode code) { call.voice.End(code); });
  Result<std::unique_ptr<Lab>> lab = OpenLabToLook(call);
  if (!lab) return FailWith(call, lab.error(), ExitCode::kLabFailed);
  if (Result<void> can_end = CheckCanEnd(**lab, run); !can_end) {
    return FailWith(call, can_end.error());
  }
  const FollowResult followed =
      FollowOnView(call, (*lab)->client(), {.run_id = run, .limit = onlooking.limit},
                   onlooking.progress, onlooking.hint, interrupts);
  return Conclude(call, followed, interrupts,
                  {.judge = [&] { return onlooking.judge(**lab, followed.summary); },
                   .goes_on = fmt::format("{}: still going on; next: labrack wait {}{}", run, run,
                                          AddressWords(call))});
}

std::string AddressWords(const Call& call) {
  const std::optional<std::string> address = call.arguments.Text("controller");
  return address ? fmt::format(" --controller {}", *address) : "";
}

}  // namespace labrack::cli
