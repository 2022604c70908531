#include "storage/runtime/uring_reactor.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>

#include "storage/base/check.h"

namespace labrack::runtime {
namespace {

// The poll of the mailbox, among the completions of operations.
constexpr std::uint64_t kMail = 0;

int Setup(unsigned entries, io_uring& ring) {
  // From the newest kernel's ways to the oldest's.
  const unsigned kWays[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                            IORING_SETUP_COOP_TASKRUN, 0};
  int error = 0;
  for (const unsigned flags : kWays) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = 2 * entries;
    error = io_uring_queue_init_params(entries, &ring, &params);
    if (error != -EINVAL) return error;
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<UringReactor>> UringReactor::Open(unsigned entries) {
  std::unique_ptr<UringReactor> reactor(new UringReactor);
  if (Result<void> opened = reactor->mailbox_.Open(); !opened) {
    return std::unexpected(opened.error());
  }
  const int error = -Setup(entries, reactor->ring_);
  if (error == ENOSYS || error == EPERM || error == EACCES) {
    return Fail(Errc::kUnsupported, "io_uring",
                "this kernel, or a policy of this host, forbids it");
  }
  if (error != 0) return std::unexpected(Error::FromErrno(error, "io_uring_setup", "a reactor"));
  reactor->open_ = true;
  reactor->entries_ = entries;
  return reactor;
}

UringReactor::~UringReactor() {
  if (open_) io_uring_queue_exit(&ring_);
}

void UringReactor::Submit(FileOp& operation) {
  // One entry is kept for the mailbox.
  if (in_kernel_ + 1 >= entries_) {
    backlog_.Push(operation);
  } else {
    Issue(operation);
  }
}

void UringReactor::Issue(FileOp& operation) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  LABRACK_CHECK(entry != nullptr);  // no more operations than entries are ever issued
  const auto length = static_cast<unsigned>(operation.length);
  switch (operation.kind) {
    case FileOp::Kind::kRead:
      io_uring_prep_read(entry, operation.fd, operation.memory, length, operation.at.value());
      break;
    case FileOp::Kind::kWrite:
      io_uring_prep_write(entry, operation.fd, operation.memory, length, operation.at.value());
      if (operation.durable) entry->rw_flags = RWF_DSYNC;
      break;
    case FileOp::Kind::kSync:
      io_uring_prep_fsync(entry, operation.fd, IORING_FSYNC_DATASYNC);
      break;
  }
  io_uring_sqe_set_data(entry, &operation);
  ++in_kernel_;
  ++unsubmitted_;
}

void UringReactor::ListenForMail() {
  if (listening_) return;
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  LABRACK_CHECK(entry != nullptr);
  io_uring_prep_poll_add(entry, mailbox_.fd(), POLLIN);
  io_uring_sqe_set_data64(entry, kMail);
  ++unsubmitted_;
  listening_ = true;
}

void UringReactor::Enter(bool wait, std::optional<TimePoint> until) {
  if (!wait) {
    if (in_kernel_ > 0 || unsubmitted_ > 0) io_uring_submit_and_get_events(&ring_);
  } else {
    __kernel_timespec left{};
    if (until) {
      const Nanoseconds time = std::max(*until - Now(), Nanoseconds(0));
      left.tv_sec = time.count() / 1'000'000'000;
      left.tv_nsec = time.count() % 1'000'000'000;
    }
    io_uring_cqe* completion = nullptr;
    io_uring_submit_and_wait_timeout(&ring_, &completion, 1, until ? &left : nullptr, nullptr);
  }
  // What the kernel would not take (EAGAIN, EBUSY) stays in the ring for the next turn.
  unsubmitted_ = io_uring_sq_ready(&ring_);
}

void UringReactor::TakeCompletions() {
  unsigned head = 0;
  unsigned taken = 0;
  io_uring_cqe* completion = nullptr;
  io_uring_for_each_cqe(&ring_, head, completion) {
    ++taken;
    if (completion->user_data == kMail) {
      listening_ = false;
      continue;
    }
    FileOp& operation = *static_cast<FileOp*>(io_uring_cqe_get_data(completion));
    operation.result = completion->res;
    --in_kernel_;
    Wake(operation.waiter);
  }
  io_uring_cq_advance(&ring_, taken);
}

bool UringReactor::Poll(bool wait, std::optional<TimePoint> until) {
  ListenForMail();
  Enter(wait, until);
  TakeCompletions();
  while (in_kernel_ + 1 < entries_) {
    FileOp* operation = backlog_.Pop();
    if (operation == nullptr) break;
    Issue(*operation);
  }
  if (!listening_) mailbox_.TakeAll();
  return true;  // mail may come at any time
}

}  // namespace labrack::runtime
