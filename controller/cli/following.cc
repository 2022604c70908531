#include "controller/cli/following.h"

#include <fmt/format.h>

#include "controller/api/archive.h"
#include "controller/cli/progress.h"
#include "controller/cli/run_state.h"

namespace labrack::cli {
namespace {

std::unique_ptr<ProgressView> MakeView(const Call& call, const std::string& progress,
                                       const std::string& hint) {
  const Voice::Form& form = call.voice.form();
  const ProgressKind kind =
      form.json ? ProgressKind::kJson
                : ChooseProgress(call.arguments.Text("progress").value_or(progress), call.terminal);
  return MakeProgressView(kind, form.descriptor, call.terminal, hint);
}

// Why a run that has not ended cannot be followed without its controller.
Error NotFollowed(const std::string& run, report::Unfinished unfinished) {
  if (unfinished == report::Unfinished::kGoesOn) {
    return Error(
        Errc::kUnavailable, run,
        "a controller works on its catalog now; try again, or name it with --controller ADDR");
  }
  return Error(
      Errc::kUnavailable, run,
      "it will not end: the lab on this machine that ran it was killed; start it again "
      "with `labrack run PLAYBOOK`, which also cancels this one and cleans up what it left");
}

// Where there is no controller: a run that has ended, told at once.
ExitCode LookBack(const Call& call, Records& records, const Onlooking& onlooking) {
  Result<v1::RunRecord> record =
      records.ShowRun(call.arguments.Operand(0), v1::RECORD_LEVEL_SUMMARY);
  if (!record) return FailWith(call, record.error());
  const v1::RunSummary summary = record->summary();
  if (!HasEnded(summary.state())) {
    return FailWith(call, NotFollowed(summary.run_id(), records.unfinished()));
  }
  const std::unique_ptr<ProgressView> view = MakeView(call, onlooking.progress, onlooking.hint);
  const TimePoint now = MonotonicClock().Now();
  view->OnEvent(api::WholeOf(*std::move(record)), now);
  view->Finish(now);
  return onlooking.judge(records, summary);
}

}  // namespace

FollowResult FollowOnView(const Call& call, Client& client, const FollowOptions& options,
                          const std::string& progress, const std::string& hint,
                          Interrupts& interrupts) {
  const std::unique_ptr<ProgressView> view = MakeView(call, progress, hint);
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
  Result<Records> records = Records::Open(call);
  if (!records) return FailWith(call, records.error(), ExitCode::kLabFailed);
  if (records->client() == nullptr) return LookBack(call, *records, onlooking);
  const FollowResult followed =
      FollowOnView(call, *records->client(), {.run_id = run, .limit = onlooking.limit},
                   onlooking.progress, onlooking.hint, interrupts);
  return Conclude(call, followed, interrupts,
                  {.judge = [&] { return onlooking.judge(*records, followed.summary); },
                   .goes_on = fmt::format("{}: still going on; next: labrack wait {}{}", run, run,
                                          AddressWords(call))});
}

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string AddressWords(const Call& call) {
  if (const std::optional<std::string> address = call.arguments.Text("controller")) {
    return " --controller " + ShellWord(*address);
  }
  const std::optional<std::string> state = call.arguments.Text("state");
  return state ? " --state " + ShellWord(*state) : "";
}

}  // namespace labrack::cli
