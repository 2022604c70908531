// UringReactor: real time, one io_uring. What coroutines submit goes to the kernel in one batch per
// turn; completions are taken in only when this thread asks for them (IORING_SETUP_SINGLE_ISSUER
// and DEFER_TASKRUN, where the kernel has them), so nothing interrupts a coroutine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <liburing.h>

#include "storage/base/result.h"
#include "storage/runtime/mailbox.h"
#include "storage/runtime/reactor.h"

namespace labrack::runtime {

class UringReactor final : public Reactor {
 public:
  static constexpr unsigned kEntriesDefault = 512;  // operations in the kernel at once

  // kUnsupported where the kernel or a policy of the host forbids io_uring.
  static Result<std::unique_ptr<UringReactor>> Open(unsigned entries = kEntriesDefault);
  ~UringReactor() override;

  TimePoint Now() const override { return MonotonicClock().Now(); }
  void Post(std::function<void()> task) override { mailbox_.Post(std::move(task)); }
  void Submit(FileOp& operation) override;

 protected:
  bool Poll(bool wait, std::optional<TimePoint> until) override;

 private:
  UringReactor() : mailbox_(kMailMax) {}
  void Issue(FileOp& operation);
  void ListenForMail();
  void Enter(bool wait, std::optional<TimePoint> until);
  void TakeCompletions();

  Mailbox mailbox_;
  io_uring ring_{};
  bool open_ = false;
  unsigned entries_ = 0;
  unsigned in_kernel_ = 0;    // operations of files; at most entries_
  unsigned unsubmitted_ = 0;  // entries that the kernel has not seen
  bool listening_ = false;    // a poll of the mailbox's descriptor is in the kernel
  FileOpQueue backlog_;       // for which there was no room
};

}  // namespace labrack::runtime
