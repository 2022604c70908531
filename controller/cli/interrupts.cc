#include "controller/cli/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

#include "storage/base/check.h"

namespace labrack::cli {
namespace {

// But for those that whoever started us has us ignore, as nohup does and a shell for jobs in the
// background.
sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&set, number);
  }
  return set;
}

ExitCode CodeOf(int signal) {
  return signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t set = Watched();
  LABRACK_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  signals_ = Descriptor(signalfd(-1, &set, SFD_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  LABRACK_CHECK(signals_.valid() && stop_.valid());
  listener_ = std::thread([this] { Listen(); });
}

Interrupts::~Interrupts() {
  const std::uint64_t one = 1;
  LABRACK_CHECK(write(stop_.get(), &one, sizeof one) == sizeof one);
  listener_.join();
  const sigset_t set = Watched();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<int> Interrupts::signal() const {
  const std::lock_guard lock(mutex_);
  return signal_;
}

ExitCode Interrupts::exit_code() const {
  const std::lock_guard lock(mutex_);
  LABRACK_CHECK(signal_.has_value());
  return CodeOf(*signal_);
}

void Interrupts::SayWhenForced(std::function<void(ExitCode)> say) {
  const std::lock_guard lock(mutex_);
  forced_ = std::move(say);
}

bool Interrupts::WaitFor(Nanoseconds time) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return signal_.has_value(); });
}

void Interrupts::Listen() {
  while (true) {
    pollfd descriptors[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                            {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    if (poll(descriptors, 2, -1) < 0) continue;
    if (descriptors[1].revents != 0) return;
    signalfd_siginfo info = {};
    if (read(signals_.get(), &info, sizeof info) != sizeof info) continue;
    const std::lock_guard lock(mutex_);
    if (signal_) {
      if (forced_) forced_(CodeOf(*signal_));
      _exit(ToInt(CodeOf(*signal_)));
    }
    signal_ = static_cast<int>(info.ssi_signo);
    changed_.notify_all();
  }
}

}  // namespace labrack::cli
