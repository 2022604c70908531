#include "controller/cli/client.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "proto/convert/convert.h"
#include "storage/base/units.h"

namespace labrack::cli {
namespace {

constexpr const char* kDefaultPort = "7480";
// A page with the results of many hosts, or a large plan, is larger than gRPC's 4 MiB.
constexpr int kMessageBytesMax = 512 << 20;

std::string WithPort(const std::string& address) {
  if (address.starts_with("unix:") || address.contains("]:")) return address;
  if (address.ends_with(']')) return fmt::format("{}:{}", address, kDefaultPort);
  return address.contains(':') ? address : fmt::format("{}:{}", address, kDefaultPort);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  // A proxy of the environment has no business on the way to a lab.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::chrono::system_clock::time_point Deadline(Nanoseconds limit) {
  return std::chrono::system_clock::now() + limit;
}

}  // namespace

Client::Client(const std::string& address)
    : address_(WithPort(address)),
      channel_(MakeChannel(address_)),
      stub_(v1::Control::NewStub(channel_)) {}

Error Client::Explain(const grpc::Status& status) const {
  // The controller's own errors say so (proto/convert); the rest is the connection.
  if (status.error_details().starts_with("errc=")) return convert::FromStatus(status);
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Error(Errc::kUnavailable, address_,
                   fmt::format("no controller answers here ({})", status.error_message()));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error(Errc::kUnavailable, address_,
                   fmt::format("no answer within {}", FormatDuration(kCallLimit)));
    case grpc::StatusCode::UNIMPLEMENTED:
      return Error(Errc::kUnsupported, address_,
                   "this controller does not know the request; is it the agents' port, or older?");
    default:
      return convert::FromStatus(status);
  }
}

namespace {

// One unary call: a fresh connection is waited for, but not for ever.
template <typename Reply, typename Call>
Result<Reply> Invoke(const Client& client, grpc::Channel& channel, Call call) {
  if (!channel.WaitForConnected(Deadline(kConnectLimit))) {
    return Fail(Errc::kUnavailable, client.address(), "no controller answers here");
  }
  grpc::ClientContext context;
  context.set_deadline(Deadline(kCallLimit));
  Reply reply;
  const grpc::Status status = call(context, reply);
  if (!status.ok()) return std::unexpected(client.Explain(status));
  return reply;
}

}  // namespace

Result<v1::PlanReply> Client::Plan(const v1::PlanRequest& request) {
  return Invoke<v1::PlanReply>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->PlanRun(&context, request, &reply);
  });
}

Result<v1::SubmitReply> Client::Submit(const v1::SubmitRequest& request) {
  return Invoke<v1::SubmitReply>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->Submit(&context, request, &reply);
  });
}

Result<v1::ListRunsReply> Client::ListRuns(std::uint32_t limit) {
  v1::ListRunsRequest request;
  request.set_limit(limit);
  return Invoke<v1::ListRunsReply>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->ListRuns(&context, request, &reply);
  });
}

Result<v1::RunRecord> Client::ShowRun(const std::string& run_id, v1::RecordLevel level) {
  v1::ShowRunRequest request;
  request.set_run_id(run_id);
  request.set_level(level);
  return Invoke<v1::RunRecord>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->ShowRun(&context, request, &reply);
  });
}

Result<v1::RunRecord> Client::FetchRun(const std::string& run_id) {
  v1::ShowRunRequest request;
  request.set_run_id(run_id);
  request.set_level(v1::RECORD_LEVEL_RESULTS);
  request.set_page_bytes(kPageBytes);
  v1::RunRecord run;
  for (;;) {
    Result<v1::RunRecord> page = Invoke<v1::RunRecord>(
        *this, *channel_,
        [&](auto& context, auto& reply) { return stub_->ShowRun(&context, request, &reply); });
    if (!page) return page;
    const int trials = page->trials_size();
    if (request.first_trial() == 0) {
      run.Swap(&*page);
    } else {
      for (v1::TrialRecord& trial : *page->mutable_trials()) run.add_trials()->Swap(&trial);
    }
    request.set_first_trial(static_cast<std::uint32_t>(run.trials_size()));
    if (trials == 0 || request.first_trial() >= run.summary().trials_total()) return run;
  }
}

Result<v1::CancelReply> Client::Cancel(const std::string& run_id, const std::string& reason) {
  v1::CancelRequest request;
  request.set_run_id(run_id);
  request.set_reason(reason);
  return Invoke<v1::CancelReply>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->Cancel(&context, request, &reply);
  });
}

Result<v1::Report> Client::Compare(const std::string& base_run, const std::string& test_run) {
  v1::CompareRequest request;
  request.set_base_run(base_run);
  request.set_test_run(test_run);
  return Invoke<v1::Report>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->Compare(&context, request, &reply);
  });
}

Result<v1::HostsReply> Client::Hosts() {
  const v1::HostsRequest request;
  return Invoke<v1::HostsReply>(*this, *channel_, [&](auto& context, auto& reply) {
    return stub_->Hosts(&context, request, &reply);
  });
}

ExitCode ExitCodeOf(const Error& error) {
  switch (error.code()) {
    case Errc::kInvalidArgument:  // a run id that is none, an option that does not fit
    case Errc::kNotFound:
    case Errc::kAlreadyExists:
      return ExitCode::kUsage;
    case Errc::kPermissionDenied:
      return ExitCode::kNotAuthorised;
    case Errc::kRefusedBySafety:
      return ExitCode::kRefusedBySafety;
    case Errc::kCancelled:
      return ExitCode::kCancelled;
    case Errc::kTimedOut:
    case Errc::kNoSpace:
    case Errc::kIo:
    case Errc::kDataMismatch:
    case Errc::kBusy:
    case Errc::kUnsupported:
    case Errc::kUnavailable:
    case Errc::kCorrupt:
    case Errc::kExhausted:
    case Errc::kInternal:
      return ExitCode::kLabFailed;
  }
  return ExitCode::kLabFailed;
}

}  // namespace labrack::cli
