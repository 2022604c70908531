#include "agent/exec/run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <vector>

#include "agent/exec/capped_buffer.h"
#include "agent/exec/child.h"
#include "agent/exec/family.h"
#include "storage/base/config/utf8.h"

namespace labrack::exec {
namespace {

constexpr Nanoseconds kCancelCheckInterval = std::chrono::milliseconds(50);
constexpr std::size_t kReadSize = 64 * 1024;
constexpr std::size_t kDescribedBytesMax = 300;

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return FailErrno("pipe2", "");
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  // Only our own end: the program expects a writer that blocks.
  if (fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK) != 0) return FailErrno("fcntl", "pipe");
  return pipe;
}

// In the environment of a command, by which what it has started is found.
constexpr const char* kCommandMark = "LABRACK_COMMAND";

// Its value. No two are the same on a host since it was started.
std::string NextMark() {
  static std::atomic<std::uint64_t> count = 0;
  const std::optional<ProcessFacts> self = ReadProcess(getpid());
  return std::to_string(getpid()) + "." + std::to_string(self ? self->start_ticks : 0) + "." +
         std::to_string(++count);
}

// One output stream of the command.
class Stream {
 public:
  Stream(Descriptor reader, const Command& command)
      : reader_(std::move(reader)), kept_(command.output_head_max, command.output_tail_max) {}

  bool open() const { return reader_.valid(); }
  int fd() const { return reader_.get(); }  // -1 at the end, which poll passes over
  const CappedBuffer& kept() const { return kept_; }

  // Takes what is there, at most `reads_max` portions, so that a flood cannot hold us past a limit
  // in time.
  void Drain(int reads_max) {
    std::array<char, kReadSize> buffer;
    for (int i = 0; i < reads_max && open(); ++i) {
      const ssize_t count = read(reader_.get(), buffer.data(), buffer.size());
      if (count > 0) {
        kept_.Append(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        reader_.Close();
      } else {
        return;
      }
    }
  }

 private:
  Descriptor reader_;
  CappedBuffer kept_;
};

// The states of one command, advanced by Step until it is over.
class Running {
 public:
  Running(const Command& command, std::string mark, TimePoint start, Child child, Stream output,
          Stream errors)
      : command_(command),
        family_{.mark = std::move(mark), .session = std::nullopt, .above = std::nullopt},
        child_(std::move(child)),
        output_(std::move(output)),
        errors_(std::move(errors)),
        start_(start) {}

  Result<Outcome> ToTheEnd() {
    while (true) {
      const TimePoint now = MonotonicClock().Now();
      if (!ended_at_ && child_.HasEnded()) ended_at_ = now;
      if (ended_at_) {
        const bool all_read = !output_.open() && !errors_.open();
        if (all_read || now >= *ended_at_ + kOutputAfterExit) return Finish();
      } else if (Result<void> limits = CheckLimits(now); !limits) {
        return std::unexpected(limits.error());
      }
      Wait(now);
    }
  }

 private:
  // TERM at a limit or when cancelled, KILL later, an error when even that does not help.
  Result<void> CheckLimits(TimePoint now) {
    if (!stopping_since_) {
      timed_out_ = now >= start_ + command_.timeout;
      cancelled_ = command_.cancel != nullptr && command_.cancel->cancelled();
      if (!timed_out_ && !cancelled_) return {};
      stopping_since_ = now;
      return child_.SignalGroup(SIGTERM);
    }
    if (now >= *stopping_since_ + kTermToKill + kKillToGivingUp) {
      return Fail(Errc::kTimedOut, command_.words[0],
                  "process " + std::to_string(child_.pid()) +
                      " does not end although it was killed; it hangs in the kernel");
    }
    if (!killed_ && now >= *stopping_since_ + kTermToKill) {
      killed_ = true;
      KillFamily(family_);  // what has left the group still knows its parents
      return child_.KillGroup();
    }
    return {};
  }

  TimePoint NextDeadline(TimePoint now) const {
    if (ended_at_) return *ended_at_ + kOutputAfterExit;
    if (stopping_since_) return now + kCancelCheckInterval;
    const TimePoint limit = start_ + command_.timeout;
    return command_.cancel == nullptr ? limit : std::min(limit, now + kCancelCheckInterval);
  }

  void Wait(TimePoint now) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(Nanoseconds(0), NextDeadline(now) - now));
    std::array<pollfd, 3> entries = {{
        {.fd = output_.fd(), .events = POLLIN, .revents = 0},
        {.fd = errors_.fd(), .events = POLLIN, .revents = 0},
        // Once it has ended it would be ready at every call.
        {.fd = ended_at_ ? -1 : child_.pidfd(), .events = POLLIN, .revents = 0},
    }};
    poll(entries.data(), entries.size(),
         static_cast<int>(std::min<std::int64_t>(wait.count(), 60'000)));
    constexpr int kReadsPerStep = 16;
    if (entries[0].revents != 0) output_.Drain(kReadsPerStep);
    if (entries[1].revents != 0) errors_.Drain(kReadsPerStep);
  }

  Result<Outcome> Finish() {
    // Whatever it left behind goes too; the zombie still holds the number of the group.
    if (Result<void> killed = child_.KillGroup(); !killed) return std::unexpected(killed.error());
    const std::vector<ProcessFacts> left = EndFamily(family_, kKillToGivingUp);
    Result<ExitStatus> status = child_.WaitUntil(MonotonicClock().Now() + kKillToGivingUp);
    if (!status) return std::unexpected(status.error());
    if (!left.empty()) {
      return Fail(Errc::kTimedOut, command_.words[0],
                  "it ended, but what it has started cannot be killed: " + NamesOf(left));
    }
    constexpr int kLastReads = 1024;
    output_.Drain(kLastReads);
    errors_.Drain(kLastReads);

    Outcome outcome;
    outcome.program = std::filesystem::path(command_.words[0]).filename().string();
    outcome.exit_code = status->exit_code;
    outcome.signal = status->signal;
    outcome.timed_out = timed_out_;
    outcome.cancelled = cancelled_ && !timed_out_;
    outcome.output = output_.kept().Text();
    outcome.errors = errors_.kept().Text();
    outcome.dropped_bytes = output_.kept().dropped_bytes() + errors_.kept().dropped_bytes();
    outcome.cpu = status->cpu;
    outcome.wall = *ended_at_ - start_;
    return outcome;
  }

  const Command& command_;
  Family family_;
  Child child_;
  Stream output_;
  Stream errors_;
  TimePoint start_;
  std::optional<TimePoint> ended_at_;
  std::optional<TimePoint> stopping_since_;
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool killed_ = false;
};

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

// The last lines of what a tool said, on one line.
std::string Tail(std::string_view text) {
  text = TrimEnd(text);
  std::string tail(
      text.size() <= kDescribedBytesMax ? text : text.substr(text.size() - kDescribedBytesMax));
  if (text.size() > kDescribedBytesMax) tail = "..." + tail;
  for (std::size_t at = tail.find('\n'); at != std::string::npos; at = tail.find('\n')) {
    tail.replace(at, 1, " | ");
  }
  return config::AsUtf8(tail);
}

bool SpeaksOfFullDevice(const Outcome& outcome) {
  return outcome.errors.find("No space left on device") != std::string::npos ||
         outcome.output.find("No space left on device") != std::string::npos;
}

}  // namespace

std::string Outcome::Describe() const {
  std::string text = program + ": ";
  const ExitStatus status{.exit_code = exit_code, .signal = signal, .cpu = {}};
  if (ok()) return text + "done";
  if (timed_out) {
    text +=
        "stopped at its time limit after " + std::to_string(wall / std::chrono::seconds(1)) + " s";
  } else if (cancelled) {
    text += "cancelled";
  } else {
    text += status.Describe();
  }
  const std::string said = Tail(errors.empty() ? output : errors);
  return said.empty() ? text : text + ": " + said;
}

Result<Outcome> Run(const Command& command) {
  if (command.timeout <= Nanoseconds(0)) {
    return Fail(Errc::kInvalidArgument, "a command needs a time limit");
  }
  if (command.cancel != nullptr && command.cancel->cancelled()) {
    return Fail(Errc::kCancelled, command.words.empty() ? "" : command.words[0],
                "cancelled before it was started");
  }
  Result<Pipe> output = MakePipe();
  if (!output) return std::unexpected(output.error());
  Result<Pipe> errors = MakePipe();
  if (!errors) return std::unexpected(errors.error());
  SpawnOptions options;
  options.output_fd = output->writer.get();
  options.errors_fd = errors->writer.get();
  const std::string mark = NextMark();
  Command marked = command;
  marked.environment[kCommandMark] = mark;
  const TimePoint start = MonotonicClock().Now();
  Result<Child> child = Child::Spawn(marked, options);
  if (!child) return std::unexpected(child.error());
  output->writer.Close();
  errors->writer.Close();
  Running running(command, std::string(kCommandMark) + "=" + mark, start, std::move(*child),
                  Stream(std::move(output->reader), command),
                  Stream(std::move(errors->reader), command));
  return running.ToTheEnd();
}

Result<Outcome> RunChecked(const Command& command) {
  Result<Outcome> outcome = Run(command);
  if (!outcome || outcome->ok()) return outcome;
  if (outcome->timed_out) return Fail(Errc::kTimedOut, outcome->Describe());
  if (outcome->cancelled) return Fail(Errc::kCancelled, outcome->Describe());
  return Fail(SpeaksOfFullDevice(*outcome) ? Errc::kNoSpace : Errc::kIo, outcome->Describe());
}

}  // namespace labrack::exec
