// The control service, called: one method a request, each with a deadline. What the other side
// refuses comes back as the Error that it was there (proto/convert).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "labrack/v1/control.grpc.pb.h"
#include "storage/base/clock.h"
#include "storage/base/exit_codes.h"
#include "storage/base/result.h"

namespace labrack::cli {

// Planning a large playbook and making a report of a large run take their time.
constexpr Nanoseconds kCallLimit = std::chrono::seconds(60);
// How long a controller is tried to be reached.
constexpr Nanoseconds kConnectLimit = std::chrono::seconds(5);

// Pages of a run with results; each may be larger by one trial of all its hosts.
constexpr std::uint64_t kPageBytes = 16 << 20;

class Client {
 public:
  // `address` is HOST:PORT, or HOST for the default port. Connects lazily.
  explicit Client(const std::string& address);

  const std::string& address() const { return address_; }

  Result<v1::PlanReply> Plan(const v1::PlanRequest& request);
  Result<v1::SubmitReply> Submit(const v1::SubmitRequest& request);
  Result<v1::ListRunsReply> ListRuns(std::uint32_t limit);
  // Up to `level`, without results.
  Result<v1::RunRecord> ShowRun(const std::string& run_id, v1::RecordLevel level);
  // With all results, which come page by page: no message is as large as a large run.
  Result<v1::RunRecord> FetchRun(const std::string& run_id);
  Result<v1::CancelReply> Cancel(const std::string& run_id, const std::string& reason);
  Result<v1::Report> Compare(const std::string& base_run, const std::string& test_run);
  Result<v1::HostsReply> Hosts();

  // For streams (follow.cc): the caller owns the context and its end.
  v1::Control::Stub& stub() { return *stub_; }
  Error Explain(const grpc::Status& status) const;

 private:
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;  // shared with the stub
  std::unique_ptr<v1::Control::Stub> stub_;
};

// The exit code that an error of the lab or of a request ends with.
ExitCode ExitCodeOf(const Error& error);

}  // namespace labrack::cli
