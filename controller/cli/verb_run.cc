// labrack run: the whole way from a playbook to a verdict.
//
//   read and check the playbook -> lab (a controller elsewhere, or this machine's) -> submit
//     -> watch; Ctrl-C cancels and cleans up -> report -> files -> close the lab -> exit code
#include <filesystem>
#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "controller/cli/following.h"
#include "controller/cli/local_lab.h"
#include "controller/cli/output.h"
#include "controller/cli/report_output.h"
#include "controller/cli/run_state.h"
#include "controller/cli/verb.h"

namespace labrack::cli {
namespace {

// The controller cancels a run that nobody has watched for so long.
constexpr Nanoseconds kLease = std::chrono::seconds(120);

Result<void> CheckTogether(const Call& call) {
  const Arguments& arguments = call.arguments;
  const bool remote = arguments.Text("controller").has_value();
  if (arguments.Flag("wait") && arguments.Flag("detach")) {
    return Fail(Errc::kInvalidArgument, "--wait and --detach exclude each other; give one");
  }
  if (arguments.Flag("detach") && !remote) {
    return Fail(Errc::kInvalidArgument,
                "--detach needs --controller: the lab on this machine ends with this command");
  }
  if (arguments.Flag("detach") && WantsReportFiles(call)) {
    return Fail(Errc::kInvalidArgument,
                "--detach does not wait for the report that --json, --junit and --markdown write; "
                "`labrack show RUN` has the same options");
  }
  if (remote && arguments.Origin("agents") == "command line") {
    return Fail(Errc::kInvalidArgument,
                "--agents is for the lab on this machine; a controller has its own agents");
  }
  return CheckReportFiles(call);
}

std::string Owner(const Environment& environment) {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  for (const char* name : {"USER", "LOGNAME"}) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) {
      return fmt::format("{}@{}", found->second, host);
    }
  }
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? fmt::format("{}@{}", entry->pw_name, host)
                          : fmt::format("uid {}@{}", getuid(), host);
}

// The playbook and what else would make the same run again, with more trials say.
std::string RunWords(const Call& call) {
  const Arguments& arguments = call.arguments;
  std::string words = ShellWord(arguments.Operand(0));
  for (const char* name : {"set", "seed", "agents", "allow-dir"}) {
    if (!arguments.Knows(name) || arguments.Origin(name) != "command line") continue;
    for (const std::string& text : arguments.All(name)) {
      words += fmt::format(" --{} {}", name, ShellWord(text));
    }
  }
  if (arguments.Flag("allow-exec")) words += " --allow-exec";
  return words;
}

class RunCommand {
 public:
  explicit RunCommand(const Call& call) : call_(call) {}

  ExitCode Run() {
    if (Result<void> right = CheckTogether(call_); !right) {
      return FailWith(call_, right.error(), ExitCode::kUsage);
    }
    interrupts_.SayWhenForced([this](ExitCode code) {
      call_.voice.Warn(
          "stopped at once: agents end by themselves, but mounts, loop devices or files may be "
          "left;\nthe next `labrack run` cleans them up");
      call_.voice.End(code);
    });
    const ExitCode code = Attempt();
    // No report: nothing ran, or the lab was lost on the way.
    if (!reported_) PutOutFailure(call_, Unreported(), code);
    return code;
  }

 private:
  ExitCode Attempt() {
    if (const std::optional<ExitCode> invalid = CheckPlaybook(call_, checked_)) return *invalid;
    return WorkIn(call_, OpenLabToRun(call_, &checked_.playbook, interrupts_), interrupts_,
                  [this](Lab& lab) {
                    lab_ = &lab;
                    return Work();
                  });
  }

  v1::RunSummary Unreported() const {
    v1::RunSummary run;
    run.set_run_id(run_id_);
    run.set_playbook_name(checked_.playbook.playbook());
    if (run.playbook_name().empty()) {
      run.set_playbook_name(std::filesystem::path(call_.arguments.Operand(0)).stem().string());
    }
    run.set_created_wall_ns(started_.count());
    run.set_ended_wall_ns(WallClockNow().count());
    return run;
  }

  ExitCode Work() {
    const Result<v1::SubmitReply> submitted = Submit();
    if (!submitted) return FailWith(call_, submitted.error());
    if (const auto refused = CheckPlan(call_, submitted->plan(), checked_)) return *refused;
    run_id_ = submitted->run_id();
    clean_up_limit_ = CleanUpLimit(submitted->plan().plan().playbook().timeouts());
    lab_->set_clean_up_limit(clean_up_limit_);
    for (const std::string& note : submitted->plan().plan().notes()) call_.voice.Note(note);
    if (call_.arguments.Flag("detach")) {
      WriteOut(run_id_ + "\n");
      call_.voice.Say(fmt::format("next: labrack wait {}{}", run_id_, AddressWords(call_)));
      return ExitCode::kPassed;
    }
    return Judge(FollowRun());
  }

  Result<v1::SubmitReply> Submit() {
    v1::SubmitRequest request;
    *request.mutable_source() = checked_.source;
    request.set_seed(static_cast<std::uint64_t>(call_.arguments.Integer("seed").value_or(0)));
    request.set_owner(Owner(call_.environment));
    if (!call_.arguments.Flag("detach")) request.set_lease_ns(kLease.count());
    // A request whose answer was lost can be sent again: the same key gives the same run.
    Result<std::string> key = ReadWholeFile("/proc/sys/kernel/random/uuid", 64);
    if (!key) return std::unexpected(key.error());
    request.set_idempotency_key(key->substr(0, key->find('\n')));
    Result<v1::SubmitReply> reply = lab_->client().Submit(request);
    if (!reply && reply.error().code() == Errc::kUnavailable) {
      reply = lab_->client().Submit(request);
    }
    return reply;
  }

  FollowResult FollowRun() {
    const std::string hint =
        fmt::format("Ctrl-C cancels and cleans up   watch elsewhere: labrack watch {}{}", run_id_,
                    AddressWords(call_));
    FollowOptions options = {
        .run_id = run_id_, .cancel_on_interrupt = true, .clean_up_limit = clean_up_limit_};
    if (lab_->embedded()) options.tend = [this] { return lab_->Tend(); };
    return FollowOnView(call_, lab_->client(), options, "auto", hint, interrupts_);
  }

  ExitCode Judge(const FollowResult& followed) {
    summary_ = followed.summary;
    const std::string goes_on = fmt::format(
        "{} may go on without us for {} s; next: labrack wait {}{}", run_id_,
        std::chrono::floor<std::chrono::seconds>(kLease).count(), run_id_, AddressWords(call_));
    const ExitCode code = Conclude(call_, followed, interrupts_,
                                   {.judge = [this] { return Report(); }, .goes_on = goes_on});
    // What there is of a run that was interrupted or failed is worth its report too.
    const bool broken =
        followed.end == FollowEnd::kInterrupted || followed.end == FollowEnd::kFailed;
    if (broken) Report();
    return code;
  }

  // Prints the report and writes its files.
  ExitCode Report() {
    const Result<v1::Report> report = lab_->client().Compare(run_id_, "");
    if (!report && !HasEnded(summary_.state())) return FailWith(call_, report.error());
    reported_ = true;
    if (!report) {
      const ExitCode code = JudgeWithoutTable(call_, summary_, report.error());
      PutOutSummary(call_, summary_, code, report.error());
      return code;
    }
    return PutOutReport(call_, *report, RunWords(call_));
  }

  const Call& call_;
  Interrupts interrupts_;  // before every thread
  CheckedPlaybook checked_;
  const Nanoseconds started_ = WallClockNow();
  Lab* lab_ = nullptr;  // of Work()
  std::string run_id_;
  Nanoseconds clean_up_limit_{};  // of the plan
  v1::RunSummary summary_;        // the last that was seen
  bool reported_ = false;
};

ExitCode Run(const Call& call) { return RunCommand(call).Run(); }

}  // namespace

const Verb& RunVerb() {
  static const Verb verb = {
      .name = "run",
      .group = "do",
      .summary = "run a playbook and print the comparison",
      .details =
          "Without --controller the whole lab runs on this machine: a controller inside this\n"
          "command and --agents processes of labrack-agent. Ctrl-C cancels the run, cleans up and\n"
          "exits 130; a second one stops at once. With --detach the run goes on without us.",
      .operands = {{"PLAYBOOK"}},
      .options = WithLabOptions(WithAgentOptions(WithReportOptions(
          {{.name = "set",
            .kind = ValueKind::kText,
            .value = "KEY=VALUE",
            .help = "change a variable (vars) or field of the playbook (repeatable)",
            .repeated = true},
           {.name = "trials",
            .kind = ValueKind::kInteger,
            .value = "N",
            .help = "trials of each cell instead of the playbook's",
            .sources = Sources::kAll,
            .min = 1,
            .max = 1000},
           {.name = "seed",
            .kind = ValueKind::kInteger,
            .value = "N",
            .help = "seed of order and data; left out: made from the playbook",
            .min = 1},
           {.name = "wait", .help = "wait for the verdict (the default)"},
           {.name = "detach", .help = "print the run's id and leave; needs --controller"},
           ProgressOption()}))),
      .run = Run};
  return verb;
}

}  // namespace labrack::cli
