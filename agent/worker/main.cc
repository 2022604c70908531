// labrack-worker: runs one trial, alone or for an agent.
//
//   labrack-worker --spec FILE [--dir TRIALDIR]   runs it: the result goes to TRIALDIR/spool, a
//                                                 summary to standard error
//   labrack-worker --undo TRIALDIR                undoes what a dead worker has left
//
// Exit codes: 0 all is well; 1 a result that says what went wrong; 2 usage; 3 the specification is
// wrong; 4 hung, ended itself; 5 there is no result; 6 there was no room for one; with --undo: 1
// something is left.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <nlohmann/json.hpp>

#include "agent/exec/family.h"
#include "agent/stack/undo_log.h"
#include "agent/worker/control_server.h"
#include "agent/worker/event_log.h"
#include "agent/worker/programs.h"
#include "agent/worker/trial.h"
#include "agent/worker/trial_control.h"
#include "agent/worker/trial_files.h"
#include "labrack/v1/worker.pb.h"
#include "proto/fields/fields.h"
#include "storage/base/units.h"

namespace labrack::worker {
namespace {

enum ExitCode { kExitUsage = 2, kExitBadSpec = 3 };

// How long what a trial has left running is killed before its stack is taken down all the same.
constexpr Nanoseconds kLeftBehindWait = std::chrono::seconds(10);

struct Options {
  std::string spec;
  std::string directory;
  std::string undo;
  int lock_fd = -1;  // the trial's lock, handed over by the agent
};

// fmt::print throws where it cannot write. What is said here goes into a file (worker.log), and a
// full disk must not be the end of a tear-down.
template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

int Complain(int exit_code, const Error& error) {
  Say("labrack-worker: {}\n", error.ToString());
  return exit_code;
}

int ComplainOfNoResult(const Error& error) {
  return Complain(error.code() == Errc::kNoSpace ? kExitNoSpace : kExitNoResult, error);
}

using Json = nlohmann::json;

// Zeros that are written are meant: `direct: false` does not become the default.
void KeepWrittenZeros(const Json& written, const google::protobuf::Message& from,
                      google::protobuf::Message& into) {
  if (!written.is_object()) return;
  for (const auto& [key, value] : written.items()) {
    const auto* field = from.GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) field = from.GetDescriptor()->FindFieldByCamelcaseName(key);
    if (field == nullptr || field->is_repeated()) continue;
    const auto* reflection = from.GetReflection();
    if (field->message_type() == nullptr) {
      if (!reflection->HasField(from, field)) reflection->ClearField(&into, field);
    } else if (reflection->HasField(from, field)) {
      KeepWrittenZeros(value, reflection->GetMessage(from, field),
                       *reflection->MutableMessage(&into, field));
    }
  }
}

// A specification written by hand may leave out what has a default, and may be wrong. (The agent's
// has been planned and is whole; its zeros are left out.)
Result<void> CompleteByHand(const std::string& path, const std::string& text,
                            v1::WorkerSpec& spec) {
  const Json written = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  v1::WorkerSpec filled = spec;
  v1::AssignmentSpec& assignment = *filled.mutable_assignment();
  const std::vector<google::protobuf::Message*> parts{
      assignment.mutable_stack(), assignment.mutable_workload(), assignment.mutable_disks(),
      assignment.mutable_timeouts()};
  for (google::protobuf::Message* part : parts) fields::FillDefaults(*part);
  KeepWrittenZeros(written, spec, filled);
  std::string wrong;
  for (const google::protobuf::Message* part : parts) {
    for (const std::string& problem : fields::Check(*part)) {
      wrong += (wrong.empty() ? "" : "; ") + problem;
    }
  }
  if (!wrong.empty()) return Fail(Errc::kInvalidArgument, path, wrong);
  spec = std::move(filled);
  return {};
}

Result<v1::WorkerSpec> ReadSpec(const std::string& path, bool by_hand) {
  constexpr std::size_t kSpecMax = 4 << 20;
  Result<std::string> text = ReadFile(path, kSpecMax);
  if (!text) return std::unexpected(text.error());
  v1::WorkerSpec spec;
  const auto status = google::protobuf::util::JsonStringToMessage(*text, &spec);
  if (!status.ok()) return Fail(Errc::kInvalidArgument, path, std::string(status.message()));
  if (spec.assignment().assignment_id().empty() || !spec.assignment().has_stack() ||
      !spec.assignment().has_workload()) {
    return Fail(Errc::kInvalidArgument, path,
                "a specification has `assignment` with `assignment_id`, `stack` and `workload`");
  }
  if (!by_hand) return spec;
  if (Result<void> completed = CompleteByHand(path, *text, spec); !completed) {
    return std::unexpected(completed.error());
  }
  return spec;
}

// Where it is run by hand: everything beside each other in the trial's directory.
void FillLocalDefaults(const TrialFiles& files, v1::WorkerSpec& spec) {
  const std::filesystem::path base = std::filesystem::absolute(files.directory());
  if (spec.disks_dir().empty()) spec.set_disks_dir((base / "disks").string());
  if (spec.mount_dir().empty()) spec.set_mount_dir((base / "mounts").string());
}

Result<Descriptor> TakeLock(const TrialFiles& files, int lock_fd) {
  if (lock_fd < 0) return files.Lock();
  // It must not go on to programs that the trial starts: they may outlive the worker.
  if (fcntl(lock_fd, F_SETFD, FD_CLOEXEC) != 0) return FailErrno("fcntl", "--lock-fd");
  return Descriptor(lock_fd);
}

void PrintSummary(const v1::AssignmentResult& result) {
  const auto verdict = [](const char* name, const v1::Verdict3& verdict) {
    Say("{:<12} {}{}{}\n", name, v1::Outcome_Name(verdict.outcome()).substr(8),
        verdict.reason().empty() ? "" : ": ", verdict.reason());
  };
  verdict("measurement", result.measurement());
  verdict("environment", result.environment_verdict());
  verdict("clean-up", result.clean_up());
  Say("{:<12} {} {}\n", "verified", v1::VerifyOutcome_Name(result.verified()).substr(15),
      result.verify_detail());
  for (const v1::StepResult& step : result.steps()) {
    const Nanoseconds window(step.measure_end_mono_ns() - step.measure_begin_mono_ns());
    Say("step {}: {}\n", step.step(), FormatDuration(window));
    for (const v1::OperationResult& operation : step.operations()) {
      Say("  {:<10} {:>10} operations, {}\n", operation.operation(), operation.count(),
          FormatBytes(Bytes(operation.bytes())));
    }
  }
  for (const v1::Warning& warning : result.warnings()) {
    Say("warning[{}]: {}\n", warning.code(), warning.message());
  }
}

int RunTrial(const Options& options) {
  Result<v1::WorkerSpec> spec = ReadSpec(options.spec, options.lock_fd < 0);
  if (!spec) return Complain(kExitBadSpec, spec.error());
  const v1::AssignmentSpec& assignment = spec->assignment();
  const TrialFiles files(options.directory.empty()
                             ? TrialName(assignment.assignment_id(), assignment.epoch())
                             : options.directory);
  std::error_code failed;
  std::filesystem::create_directories(files.directory(), failed);
  if (failed) {
    return Complain(kExitNoResult,
                    Error::FromErrno(failed.value(), "mkdir", files.directory().string()));
  }
  Result<Descriptor> lock = TakeLock(files, options.lock_fd);
  if (!lock) return Complain(kExitNoResult, lock.error());
  // What the trial starts carries the mark, and comes back here when its parent has died.
  if (setenv(exec::kTrialMark, files.mark().c_str(), 1) != 0) {
    return Complain(kExitNoResult, Error::FromErrno(errno, "setenv", exec::kTrialMark));
  }
  if (Result<void> adopts = exec::AdoptOrphans(); !adopts) {
    return Complain(kExitNoResult, adopts.error());
  }
  if (Result<void> wrote = files.WriteHolder(/*undoes=*/false); !wrote) {
    return Complain(kExitNoResult, wrote.error());
  }
  FillLocalDefaults(files, *spec);

  Result<std::unique_ptr<ControlServer>> server =
      ControlServer::Open(files, assignment.assignment_id(), assignment.epoch());
  if (!server) return Complain(kExitNoResult, server.error());
  Result<spool::SpoolWriter> writer = spool::SpoolWriter::Create(
      files.spool(), {.assignment_id = assignment.assignment_id(), .epoch = assignment.epoch()},
      {});
  if (!writer) return ComplainOfNoResult(writer.error());

  const auto ring = [&server] { (*server)->Ring(); };
  EventLog events(*std::move(writer), MonotonicClock(), ring);
  // Whatever still runs of the trial would write on, and hold what is about to be taken down.
  const auto end_all = [&files, &events, &assignment] {
    if (!RunsPrograms(assignment.workload())) return;  // looking costs milliseconds
    const std::vector<exec::ProcessFacts> left =
        exec::EndFamily(exec::TrialFamily(files.mark(), getpid()), kLeftBehindWait);
    if (!left.empty()) events.Note("cannot be killed: " + exec::NamesOf(left));
  };
  TrialControl control(MonotonicClock(), ring, end_all);
  workload::Progress progress;
  std::thread control_thread([&] { (*server)->Run(control, events, progress, MonotonicClock()); });
  Trial trial(*spec, files, control, events, progress);
  Result<v1::AssignmentResult> result = trial.Run();
  (*server)->Finish();
  control_thread.join();

  if (!result) return ComplainOfNoResult(result.error());
  if (options.lock_fd < 0) PrintSummary(*result);
  const bool ok = result->measurement().outcome() == v1::OUTCOME_OK &&
                  result->environment_verdict().outcome() == v1::OUTCOME_OK &&
                  result->clean_up().outcome() == v1::OUTCOME_OK;
  return ok ? kExitOk : kExitNotOk;
}

int Undo(const std::string& directory) {
  const TrialFiles files(directory);
  Result<Descriptor> lock = files.Lock();
  if (!lock) return Complain(kExitNoResult, lock.error());
  // Nobody may take us for the worker.
  if (Result<void> wrote = files.WriteHolder(/*undoes=*/true); !wrote) {
    Say("labrack-worker: {}\n", wrote.error().ToString());
  }
  const std::vector<exec::ProcessFacts> left =
      exec::EndFamily(exec::TrialFamily(files.mark()), kLeftBehindWait);
  if (!left.empty()) Say("cannot be killed: {}\n", exec::NamesOf(left));
  Result<stack::UndoLog> undo = stack::UndoLog::Open(files.undo_log());
  if (!undo) return Complain(kExitNotOk, undo.error());
  Result<void> undone = undo->RunAll([](const stack::UndoStep& step, const Result<void>& done) {
    Say("{}: {}\n", step.Describe(), done ? "done" : done.error().ToString());
  });
  if (!undone) return Complain(kExitNotOk, undone.error());
  return kExitOk;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs one trial of labrack.", "labrack-worker");
  Options options;
  CLI::Option* spec =
      app.add_option("--spec", options.spec, "Specification of the trial, as JSON.");
  app.add_option("--dir", options.directory,
                 "Directory of the trial; left out: named after the assignment, here.");
  CLI::Option* undo = app.add_option("--undo", options.undo,
                                     "Undo what the dead worker of this directory has left.");
  app.add_option("--lock-fd", options.lock_fd)->group("");
  spec->excludes(undo);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitOk : kExitUsage;
  }
  if (!options.undo.empty()) return Undo(options.undo);
  if (options.spec.empty()) {
    return Complain(kExitUsage,
                    Error(Errc::kInvalidArgument, "--spec FILE or --undo DIR is needed"));
  }
  return RunTrial(options);
}

}  // namespace
}  // namespace labrack::worker

int main(int argc, char** argv) { return labrack::worker::Main(argc, argv); }
