#include "agent/session/agent.h"

#include <algorithm>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/inventory/inventory.h"
#include "agent/session/identity.h"

namespace labrack::session {
namespace {

std::uint64_t SizeOfTree(const std::filesystem::path& directory) {
  std::uint64_t size = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) size += it->file_size(ignored);
  }
  return size;
}

Seed SeedOf(const std::string& agent_id) {
  return Derive(Seed{static_cast<std::uint64_t>(WallClockNow().count())}, agent_id);
}

// How long the undoing of a trial may take whose own limit is not known any more.
constexpr Nanoseconds kStrayUndoMax = std::chrono::minutes(2);

}  // namespace

Agent::Agent(const v1::AgentConfig& config) : windows_(SeedOf(config.name())) {
  context_.config = config;
}

Result<std::unique_ptr<Agent>> Agent::Open(const v1::AgentConfig& config,
                                           const std::filesystem::path& worker_program) {
  std::unique_ptr<Agent> agent(new Agent(config));
  agent->context_.worker_program = worker_program;
  if (Result<void> done = agent->OpenSignals(); !done) return std::unexpected(done.error());
  if (Result<void> done = agent->OpenState(); !done) return std::unexpected(done.error());
  if (Result<void> done = agent->OpenExporter(); !done) return std::unexpected(done.error());
  Result<std::unique_ptr<Inbox>> inbox = Inbox::Make();
  if (!inbox) return std::unexpected(inbox.error());
  agent->inbox_ = *std::move(inbox);
  agent->heart_ = std::make_unique<Heart>(agent->clock_sync_, SeedOf(agent->context_.agent_id));
  if (Result<void> done = agent->RecoverTrials(); !done) return std::unexpected(done.error());
  return agent;
}

Result<void> Agent::OpenSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return FailErrno("sigmask", "signals");
  signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return FailErrno("signalfd", "signals");
  return {};
}

Result<void> Agent::OpenState() {
  // Absolute, since workers have another working directory.
  const std::filesystem::path state = std::filesystem::absolute(context_.config.state());
  context_.config.set_state(state.string());
  Result<Descriptor> lock = LockStateDirectory(state);
  if (!lock) return std::unexpected(lock.error());
  state_lock_ = *std::move(lock);
  std::error_code error;
  std::filesystem::create_directories(context_.trials(), error);
  if (error)
    return std::unexpected(Error::FromErrno(error.value(), "mkdir", context_.trials().string()));

  Result<Journal> journal = Journal::Open(state / "agent.db");
  if (!journal) return std::unexpected(journal.error());
  journal_ = *std::move(journal);
  context_.journal = &*journal_;
  context_.clock_sync = &clock_sync_;
  Result<std::uint64_t> incarnation = journal_->NextIncarnation();
  if (!incarnation) return std::unexpected(incarnation.error());
  incarnation_ = *incarnation;
  Result<std::uint64_t> epoch = journal_->ControllerEpoch();
  if (!epoch) return std::unexpected(epoch.error());
  controller_epoch_ = *epoch;
  context_.controller_epoch = controller_epoch_;

  Result<std::string> agent_id = DecideAgentId(*journal_, context_.config.name());
  if (!agent_id) return std::unexpected(agent_id.error());
  context_.agent_id = *std::move(agent_id);
  context_.boot_id = BootId();
  context_.inventory = inventory::Collect(context_.config);
  return {};
}

Result<void> Agent::OpenExporter() {
  const std::string& listen = context_.config.metrics_listen();
  if (listen.empty()) return {};
  Result<std::unique_ptr<telemetry::Exporter>> exporter =
      telemetry::Exporter::Open(listen, Nanoseconds(context_.config.metrics_grace()),
                                {.agent_id = context_.agent_id,
                                 .version = context_.inventory.agent_version(),
                                 .git_commit = context_.inventory.git_commit()},
                                MonotonicClock());
  if (!exporter) return std::unexpected(exporter.error());
  exporter_ = *std::move(exporter);
  context_.exporter = exporter_.get();
  context_.inventory.set_metrics_address(exporter_->address());
  return {};
}

Result<void> Agent::RecoverTrials() {
  Result<std::vector<JournalRow>> rows = journal_->Held();
  if (!rows) return std::unexpected(rows.error());
  const TimePoint now = MonotonicClock().Now();
  for (JournalRow& row : *rows) {
    held_.push_back({.trial = std::make_unique<HeldTrial>(std::move(row), context_)});
    held_.back().trial->Recover(now);
  }
  FindStrayDirectories();
  return {};
}

// Directories of trials that the journal does not hold: closed, and the agent ended before they
// were deleted; or of a journal that somebody has deleted. What they left on the host is undone
// first, while the loop runs.
void Agent::FindStrayDirectories() {
  const TimePoint now = MonotonicClock().Now();
  std::error_code error;
  for (std::filesystem::directory_iterator it(context_.trials(), error), end; !error && it != end;
       it.increment(error)) {
    const worker::TrialFiles files(it->path());
    const bool is_held = std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
      return held.trial->files().directory() == files.directory();
    });
    if (is_held) continue;
    strays_.push_back({.directory = files.directory(),
                       .cleaner = {files, context_.worker_program, kStrayUndoMax}});
    strays_.back().cleaner.Begin(now, TrialCleaner::Processes::kMaybe);
  }
}

void Agent::StepStrays(TimePoint now) {
  std::erase_if(strays_, [&](Stray& stray) {
    stray.cleaner.Step(now);
    if (!stray.cleaner.clean()) return false;
    std::error_code error;
    std::filesystem::remove_all(stray.directory, error);
    if (error) spdlog::warn("{}: {}", stray.directory.string(), error.message());
    return true;
  });
  const std::string left = LeftOnHost();
  if (left == told_left_) return;
  told_left_ = left;
  if (left.empty()) {
    spdlog::info("this host is clean again, trials are accepted");
    return;
  }
  spdlog::error("this host is not clean, no trial is accepted: {}", left);
  // Those that wait were promised an end.
  for (const Held& held : held_) {
    if (held.trial->waiting()) held.trial->GiveUp("the host is not clean: " + left, now);
  }
}

std::string Agent::LeftOnHost() const {
  for (const Held& held : held_) {
    if (std::string left = held.trial->left(); !left.empty()) return left;
  }
  for (const Stray& stray : strays_) {
    if (stray.cleaner.given_up()) return stray.directory.string() + ": " + stray.cleaner.left();
  }
  return {};
}

// --- the loop ---

Result<void> Agent::Run() {
  spdlog::info("agent {} (start {}) for controller {}, state in {}", context_.agent_id,
               incarnation_, context_.config.controller(), context_.config.state());
  for (;;) {
    TimePoint now = MonotonicClock().Now();
    TimePoint next = now + std::chrono::seconds(1);
    for (const Held& held : held_) {
      next = std::min(next, held.trial->next_step());
      if (const auto armed = held.trial->gate().armed_until()) next = std::min(next, *armed);
    }
    for (const Stray& stray : strays_) next = std::min(next, stray.cleaner.next_step());
    if (!connection_) next = std::min(next, connect_at_);
    Wait(next);

    now = MonotonicClock().Now();
    TakeSignals();
    TakeInput();
    TakeMessages(now);
    StepTrials(now);
    StepStrays(now);
    StartNext(now);
    SendEvents(now);
    CloseTrials();
    UpdateBoard(now);
    RefreshInventory(now);
    KeepConnected(now);
    if (journal_->failure() && !ending_) EndForJournal();
    if (ending_ && MayEnd(now)) break;
  }
  SayGoodbye();
  if (journal_->failure()) {
    Error error = *journal_->failure();
    return Fail(
        error.code(), error.subject(),
        fmt::format("{}. What was promised is kept as far as it is durable, and trials that "
                    "run go on: look after the disk under {}, then start the agent again",
                    error.note(), context_.config.state()));
  }
  return {};
}

void Agent::SayGoodbye() {
  v1::AgentMessage goodbye;
  goodbye.mutable_goodbye()->set_reason(journal_->failure()
                                            ? "the agent ends: " + journal_->failure()->ToString()
                                        : leave_workers_ ? "the agent was stopped; trials go on"
                                                         : "the agent ends");
  Send(std::move(goodbye));
  heart_->Attach(nullptr, {});
  if (connection_) {
    // The message leaves before the stream is cut.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    DropConnection("", MonotonicClock().Now());
  }
  const TimePoint limit = MonotonicClock().Now() + kGoodbyeWait;
  while (MonotonicClock().Now() < limit &&
         !std::all_of(retired_.begin(), retired_.end(),
                      [](const auto& connection) { return connection->IsDone(); })) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Agent::Wait(TimePoint until) {
  std::vector<pollfd> polls{{.fd = inbox_->fd(), .events = POLLIN, .revents = 0},
                            {.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  if (context_.config.exit_with_parent() && !ending_) {
    polls.push_back({.fd = STDIN_FILENO, .events = POLLIN, .revents = 0});
  }
  for (const Held& held : held_) held.trial->AddPolls(polls);
  for (const Stray& stray : strays_) {
    if (stray.cleaner.poll_fd() < 0) continue;
    polls.push_back({.fd = stray.cleaner.poll_fd(), .events = POLLIN, .revents = 0});
  }
  const Nanoseconds wait = std::max(until - MonotonicClock().Now(), Nanoseconds(0));
  const timespec timeout{.tv_sec = wait.count() / 1'000'000'000,
                         .tv_nsec = wait.count() % 1'000'000'000};
  ppoll(polls.data(), polls.size(), &timeout, nullptr);
}

void Agent::TakeSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    // Ctrl-C reaches the whole foreground group; whoever has started us decides what it means and
    // closes our input.
    if (context_.config.exit_with_parent() && info.ssi_signo != SIGTERM) continue;
    if (ending_) continue;
    ending_ = true;
    if (context_.config.exit_with_parent()) {
      StopAll(fmt::format("the agent was stopped by signal {}", info.ssi_signo));
    } else {
      leave_workers_ = true;
      spdlog::info("stopped by signal {}; workers that run go on", info.ssi_signo);
    }
  }
}

void Agent::TakeInput() {
  if (!context_.config.exit_with_parent() || ending_) return;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&input, 1, 0) != 1) return;
  char bytes[256];
  const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
  ending_ = true;
  StopAll("whoever started the agent has ended");
}

void Agent::StopAll(const std::string& reason) {
  spdlog::info("ending: {}", reason);
  const TimePoint now = MonotonicClock().Now();
  for (const Held& held : held_) held.trial->Stop(reason, now);
}

// Nothing can be promised any more. What runs goes on, to be found by the next agent; where there
// will be none, it is stopped.
void Agent::EndForJournal() {
  spdlog::error("{}", journal_->failure()->ToString());
  ending_ = true;
  if (context_.config.exit_with_parent()) {
    StopAll("the agent's journal failed: " + journal_->failure()->ToString());
  } else {
    leave_workers_ = true;
  }
}

bool Agent::MayEnd(TimePoint now) {
  if (leave_workers_) return true;
  const bool all_over = std::all_of(held_.begin(), held_.end(), [](const Held& held) {
    return held.trial->settled() || !held.trial->left().empty();
  });
  if (!all_over) return false;
  if (!end_by_) end_by_ = now + kGoodbyeWait;
  const bool all_acknowledged = std::all_of(held_.begin(), held_.end(), [](const Held& held) {
    return held.trial->tail().all_acknowledged();
  });
  return all_acknowledged || !welcome_ || now >= *end_by_;
}

// --- trials ---

HeldTrial* Agent::Find(const std::string& assignment_id, std::uint64_t epoch) {
  for (const Held& held : held_) {
    if (held.trial->Is(assignment_id, epoch)) return held.trial.get();
  }
  return nullptr;
}

HeldTrial* Agent::FindAnyEpoch(const std::string& assignment_id) {
  for (const Held& held : held_) {
    if (held.trial->spec().assignment_id() == assignment_id) return held.trial.get();
  }
  return nullptr;
}

void Agent::StepTrials(TimePoint now) {
  for (const Held& held : held_) {
    held.trial->Step(now);
    if (held.trial->gate().Expire(now)) {
      spdlog::warn("{}: no Go before the start, standing at the gate again",
                   held.trial->spec().assignment_id());
      SendGateReady(*held.trial);
    }
    if (welcome_ && held.trial->TakeGateReady()) SendGateReady(*held.trial);
  }
}

// One trial at a time: two would measure each other. The others wait, in the order of their epochs.
void Agent::StartNext(TimePoint now) {
  if (ending_) return;
  // And none beside what an earlier one has left.
  if (!strays_.empty() || inventory_found_.valid()) return;
  HeldTrial* next = nullptr;
  for (const Held& held : held_) {
    if (held.trial->waiting()) {
      if (next == nullptr) next = held.trial.get();
    } else if (!held.trial->settled()) {
      return;
    }
  }
  if (next != nullptr) next->Start(now);
}

void Agent::CloseTrials() {
  std::erase_if(held_, [](const Held& held) { return held.close && held.trial->Close(); });
}

void Agent::UpdateBoard(TimePoint now) {
  v1::Heartbeat board;
  for (const Held& held : held_) {
    if (held.trial->progress()) *board.add_assignments() = *held.trial->progress();
  }
  // What costs a walk through directories is looked at once a second.
  if (now >= space_at_) {
    space_at_ = now + std::chrono::seconds(1);
    spool_bytes_ = 0;
    for (const Held& held : held_) spool_bytes_ += SizeOfTree(held.trial->files().spool());
    std::error_code error;
    const std::filesystem::space_info space =
        std::filesystem::space(context_.config.state(), error);
    disk_low_ = !error && space.available < kFreeMin.count();
  }
  board.set_spool_bytes(spool_bytes_);
  board.set_disk_low(disk_low_);
  board.set_dirty(LeftOnHost());
  heart_->SetBoard(std::move(board));
  if (exporter_ == nullptr) return;
  telemetry::AgentFigures figures;
  figures.connected = welcome_;
  figures.spool_bytes = spool_bytes_;
  figures.held_assignments = held_.size();
  if (const auto clock = clock_sync_.Best(now)) {
    figures.clock_uncertainty = clock->uncertainty;
    figures.round_trip = clock->round_trip;
  }
  exporter_->SetFigures(figures);
}

}  // namespace labrack::session
