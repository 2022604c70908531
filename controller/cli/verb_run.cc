// labrack run: the whole way from a playbook to a verdict.
//
//   read and check the playbook -> lab (a controller elsewhere, or this machine's) -> submit
//     -> watch; Ctrl-C cancels and cleans up -> report -> files -> close the lab -> exit code
#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "controller/cli/follow.h"
#include "controller/cli/local_lab.h"
#include "controller/cli/output.h"
#include "controller/cli/progress.h"
#include "controller/cli/report_output.h"
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
  return {};
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

std::string AddressWords(const Call& call) {
  const std::optional<std::string> address = call.arguments.Text("controller");
  return address ? fmt::format(" --controller {}", *address) : "";
}

class RunCommand {
 public:
  explicit RunCommand(const Call& call) : call_(call) {}

  ExitCode Run() {
    if (Result<void> right = CheckTogether(call_); !right) {
      return FailWith(call_, right.error(), ExitCode::kUsage);
    }
    if (const std::optional<ExitCode> invalid = CheckPlaybook(call_, checked_)) return *invalid;
    interrupts_.SayWhenForced(
        "\nstopped at once: agents end by themselves, but mounts, loop devices or files may be "
        "left;\nthe next `labrack run` cleans them up\n");
    Result<std::unique_ptr<Lab>> lab = OpenLabToWork(call_, &checked_.playbook, interrupts_);
    if (!lab) return LabError(lab.error());
    lab_ = std::move(*lab);
    const ExitCode code = Work();
    const bool clean = CloseLab(call_, *lab_);
    // A verdict is worth more than what was left behind; a success that left something is none.
    return code == ExitCode::kPassed && !clean ? ExitCode::kLabFailed : code;
  }

 private:
  ExitCode LabError(const Error& error) {
    if (interrupts_.signal()) return static_cast<ExitCode>(interrupts_.exit_code());
    return FailWith(call_, error, ExitCode::kLabFailed);
  }

  ExitCode Work() {
    const Result<v1::SubmitReply> submitted = Submit();
    if (!submitted) return FailWith(call_, submitted.error());
    if (submitted->plan().problem_count() > 0 || submitted->plan().problems_size() > 0) {
      return PrintRefusal(call_, submitted->plan(), checked_.source.text());
    }
    run_id_ = submitted->run_id();
    for (const std::string& note : submitted->plan().plan().notes()) Say("note: " + note);
    if (call_.arguments.Flag("detach")) {
      WriteOut(run_id_ + "\n");
      Say(fmt::format("next: labrack wait {}{}", run_id_, AddressWords(call_)));
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
    const ProgressKind kind =
        ChooseProgress(call_.arguments.Text("progress").value_or("auto"), call_.terminal);
    const std::string hint =
        fmt::format("Ctrl-C cancels and cleans up   watch elsewhere: labrack watch {}{}", run_id_,
                    AddressWords(call_));
    const std::unique_ptr<ProgressView> view =
        MakeProgressView(kind, STDERR_FILENO, call_.terminal, hint);
    FollowOptions options = {.run_id = run_id_, .cancel_on_interrupt = true};
    if (lab_->embedded()) options.tend = [this] { return lab_->Tend(); };
    return Follow(lab_->client(), options, *view, interrupts_);
  }

  ExitCode Judge(const FollowResult& followed) {
    switch (followed.end) {
      case FollowEnd::kRunEnded:
        return Report();
      case FollowEnd::kInterrupted:
        Report();
        return static_cast<ExitCode>(interrupts_.exit_code());
      case FollowEnd::kNotCleanedUp:
        Say(fmt::format("{}: not cleaned up within {} s; mounts, loop devices or files may be left",
                        run_id_, std::chrono::floor<std::chrono::seconds>(kCancelLimit).count()));
        return static_cast<ExitCode>(interrupts_.exit_code());
      case FollowEnd::kTimedOut:
      case FollowEnd::kConnectionLost:
        if (followed.error) FailWith(call_, *followed.error);
        Say(fmt::format("{} may go on without us for {} s; next: labrack wait {}{}", run_id_,
                        std::chrono::floor<std::chrono::seconds>(kLease).count(), run_id_,
                        AddressWords(call_)));
        return ExitCode::kWaitTimedOut;
      case FollowEnd::kFailed:
        break;
    }
    const ExitCode code = FailWith(call_, *followed.error);
    Report();
    return code;
  }

  // Prints the report and writes its files, of a run that failed or was cancelled too.
  ExitCode Report() {
    const Result<v1::Report> report = lab_->client().Compare(run_id_, "");
    if (!report) return FailWith(call_, report.error());
    return PutOutReport(call_, *report);
  }

  const Call& call_;
  Interrupts interrupts_;  // before every thread
  CheckedPlaybook checked_;
  std::unique_ptr<Lab> lab_;
  std::string run_id_;
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
