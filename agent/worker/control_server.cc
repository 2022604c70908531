#include "agent/worker/control_server.h"

#include <algorithm>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "proto/convert/convert.h"

namespace labrack::worker {
namespace {

constexpr Nanoseconds kLingerAfterFinish = std::chrono::seconds(1);

std::int64_t PercentileNs(const Histogram& histogram, double quantile) {
  const std::optional<Nanoseconds> value = histogram.Percentile(quantile);
  return value ? value->count() : 0;
}

}  // namespace

struct ControlServer::Live {
  TrialControl& control;
  EventLog& events;
  workload::Progress& progress;
  const Clock& clock;
  TimePoint next_report;
  v1::PhaseKind told_phase = v1::PHASE_UNSPECIFIED;
  std::string told_step;
  // For rates.
  TimePoint rate_from;
  std::uint64_t operations_before = 0;
  std::uint64_t bytes_before = 0;
  std::optional<TimePoint> cancelled_at;
};

Result<std::unique_ptr<ControlServer>> ControlServer::Open(const TrialFiles& files,
                                                           std::string assignment_id,
                                                           std::uint64_t epoch) {
  std::unique_ptr<ControlServer> server(new ControlServer());
  server->assignment_id_ = std::move(assignment_id);
  server->epoch_ = epoch;
  sigset_t stops;
  sigemptyset(&stops);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stops, number);
  if (pthread_sigmask(SIG_BLOCK, &stops, nullptr) != 0) return FailErrno("sigmask", "signals");
  server->signals_ = Descriptor(signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!server->signals_.valid()) return FailErrno("signalfd", "signals");
  server->bell_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->bell_.valid()) return FailErrno("eventfd", "bell");
  Result<Descriptor> listener = files.Listen();
  if (!listener) return std::unexpected(listener.error());
  server->listener_ = *std::move(listener);
  return server;
}

void ControlServer::Ring() {
  const std::uint64_t one = 1;
  // A full counter rings just as well.
  (void)!write(bell_.get(), &one, sizeof(one));
}

void ControlServer::Finish() {
  finished_ = true;
  Ring();
}

void ControlServer::Wait(Nanoseconds longest) {
  std::vector<pollfd> waited{{.fd = bell_.get(), .events = POLLIN, .revents = 0},
                             {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                             {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
  for (const std::unique_ptr<Client>& client : clients_) {
    const int events = client->frames.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    waited.push_back(
        {.fd = client->frames.fd(), .events = static_cast<short>(events), .revents = 0});
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  poll(waited.data(), waited.size(), static_cast<int>(std::clamp<long>(milliseconds, 0, 1000)));
  std::uint64_t rings = 0;
  (void)!read(bell_.get(), &rings, sizeof(rings));
}

void ControlServer::Accept() {
  for (;;) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    // Whoever came first may be an agent that has died without our noticing yet.
    if (clients_.size() >= kClientsMax) clients_.erase(clients_.begin());
    clients_.push_back(std::make_unique<Client>(std::move(socket)));
  }
}

void ControlServer::TakeSignals(TrialControl& control) {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    control.Stop(fmt::format("stopped by signal {}", info.ssi_signo));
  }
}

void ControlServer::TakeCommands(Client& client, Live& live) {
  if (!client.frames.Flush()) client.gone = true;
  const Result<void> received = client.frames.Receive();
  for (;;) {
    v1::WorkerCommand command;
    const Result<bool> next = client.frames.Next(command);
    if (!next) client.gone = true;
    if (!next || !*next) break;
    switch (command.body_case()) {
      case v1::WorkerCommand::kGo:
        // Where the trial does not stand at this gate, it says where it stands.
        if (!live.control.Go(command.go().gate_index(),
                             TimePoint(Nanoseconds(command.go().start_mono_ns())))) {
          client.told_gate.reset();
        }
        break;
      case v1::WorkerCommand::kStop:
        live.control.Stop(command.stop().reason());
        break;
      case v1::WorkerCommand::BODY_NOT_SET:
        live.events.Note("a command that this worker does not know");
        break;
    }
  }
  if (!received) client.gone = true;
}

v1::WorkerReport ControlServer::ProgressReport(Live& live) {
  const TrialControl::View view = live.control.view();
  const workload::Progress::Snapshot progress = live.progress.Get();
  const TimePoint now = live.clock.Now();
  v1::WorkerReport report;
  v1::AssignmentProgress& message = *report.mutable_progress();
  message.set_assignment_id(assignment_id_);
  message.set_epoch(epoch_);
  message.set_phase(view.phase);
  message.set_step(view.step);
  message.set_fraction(progress.fraction > 0 ? progress.fraction : -1);
  message.set_phase_elapsed_ns((now - view.begin).count());
  message.set_last_seq(live.events.last_seq());
  const double seconds = static_cast<double>((now - live.rate_from).count()) * 1e-9;
  // A new step counts from nothing again.
  if (progress.operations >= live.operations_before && progress.bytes >= live.bytes_before &&
      seconds > 0) {
    message.set_operations_per_second(
        static_cast<double>(progress.operations - live.operations_before) / seconds);
    message.set_bytes_per_second(static_cast<double>(progress.bytes - live.bytes_before) / seconds);
  }
  live.rate_from = now;
  live.operations_before = progress.operations;
  live.bytes_before = progress.bytes;
  message.set_p50_ns(PercentileNs(progress.last_second, 0.5));
  message.set_p99_ns(PercentileNs(progress.last_second, 0.99));
  return report;
}

// Only while a step is measured: before, there is nothing; afterwards its result counts.
v1::WorkerReport ControlServer::TotalsReport(Live& live) {
  v1::WorkerReport report;
  const TrialControl::View view = live.control.view();
  const workload::Progress::Snapshot progress = live.progress.Get();
  if (view.phase != v1::PHASE_MEASURE || progress.kinds.empty()) return report;
  v1::WorkerReport::Totals& totals = *report.mutable_totals();
  totals.set_step(view.step);
  for (const workload::OperationProgress& kind : progress.kinds) {
    v1::OperationResult& operation = *totals.add_operations();
    operation.set_operation(kind.name);
    operation.set_count(kind.count);
    operation.set_bytes(kind.bytes);
    *operation.mutable_service() = convert::ToMessage(kind.service);
  }
  return report;
}

void ControlServer::Report(Live& live, bool with_progress) {
  const TrialControl::View view = live.control.view();
  const std::uint64_t last_seq = live.events.last_seq();
  std::optional<v1::WorkerReport> progress;
  if (with_progress) progress = ProgressReport(live);
  const v1::WorkerReport totals = with_progress ? TotalsReport(live) : v1::WorkerReport();
  for (const std::unique_ptr<Client>& client : clients_) {
    const bool is_new = client->told_seq == 0;
    if (!progress && is_new) progress = ProgressReport(live);
    if (progress && !client->frames.Send(*progress)) client->gone = true;
    if (totals.has_totals() && !client->frames.Send(totals)) client->gone = true;
    if (last_seq != client->told_seq) {
      v1::WorkerReport bell;
      bell.mutable_doorbell()->set_last_seq(last_seq);
      if (!client->frames.Send(bell)) client->gone = true;
      client->told_seq = last_seq;
    }
    if (view.gate && view.gate != client->told_gate) {
      v1::WorkerReport gate;
      gate.mutable_at_gate()->set_gate_index(*view.gate);
      if (!client->frames.Send(gate)) client->gone = true;
    }
    client->told_gate = view.gate;
  }
  std::erase_if(clients_, [](const std::unique_ptr<Client>& client) { return client->gone; });
}

void ControlServer::EndIfHung(Live& live) {
  const TrialControl::View view = live.control.view();
  const TimePoint now = live.clock.Now();
  if (!live.control.cancel().cancelled() && !view.tearing_down) {
    live.cancelled_at.reset();  // what took too long has ended, and other phases follow
    return;
  }
  if (!live.cancelled_at) live.cancelled_at = now;
  TimePoint limit = *live.cancelled_at + kCancelGrace;
  if (view.tearing_down) limit = view.deadline.value_or(now) + kCancelGrace;
  if (now < limit) return;
  const std::string why =
      fmt::format("phase {} does not end although it was cancelled; the worker ends itself",
                  v1::PhaseKind_Name(view.phase));
  // What hangs may hang in the spool's own sync; then the log has to do.
  (void)live.events.TryNote(why);
  const std::string line = "labrack-worker: " + why + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
  _exit(kExitHung);
}

void ControlServer::Run(TrialControl& control, EventLog& events, workload::Progress& progress,
                        const Clock& clock) {
  Live live{.control = control,
            .events = events,
            .progress = progress,
            .clock = clock,
            .next_report = clock.Now(),
            .told_step = {},
            .rate_from = clock.Now(),
            .cancelled_at = {}};
  std::optional<TimePoint> linger_until;
  for (;;) {
    TimePoint next = live.next_report;
    if (const auto deadline = control.view().deadline) next = std::min(next, *deadline);
    Wait(std::max(next - clock.Now(), Nanoseconds(std::chrono::milliseconds(1))));
    Accept();
    TakeSignals(control);
    for (const std::unique_ptr<Client>& client : clients_) TakeCommands(*client, live);
    control.CheckDeadline();
    EndIfHung(live);

    const TrialControl::View view = control.view();
    const TimePoint now = clock.Now();
    const bool changed = view.phase != live.told_phase || view.step != live.told_step;
    const bool due = now >= live.next_report;
    if (due) live.next_report = now + kReportInterval;
    live.told_phase = view.phase;
    live.told_step = view.step;
    // Read before the report, so that the last doorbell is in it.
    const bool finished = finished_;
    Report(live, changed || due);

    if (!finished) continue;
    if (!linger_until) linger_until = now + kLingerAfterFinish;
    const bool all_sent = std::none_of(
        clients_.begin(), clients_.end(),
        [](const std::unique_ptr<Client>& client) { return client->frames.wants_to_write(); });
    if (all_sent || now >= *linger_until) return;
  }
}

}  // namespace labrack::worker
