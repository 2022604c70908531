// The command line's port (labrack/v1/control.proto). No callback blocks: each hands its call to
// the loop or to the jobs' thread, which answers it.
#pragma once

#include <atomic>

#include "controller/api/brain.h"
#include "controller/api/jobs.h"
#include "labrack/v1/control.grpc.pb.h"

namespace labrack::api {

class ControlService final : public v1::Control::CallbackService {
 public:
  ControlService(Brain* brain, Jobs* jobs) : brain_(brain), jobs_(jobs) {}

  grpc::ServerUnaryReactor* PlanRun(grpc::CallbackServerContext* context,
                                    const v1::PlanRequest* request, v1::PlanReply* reply) override;
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const v1::SubmitRequest* request,
                                   v1::SubmitReply* reply) override;
  grpc::ServerWriteReactor<v1::RunEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* context,
                                     const v1::ListRunsRequest* request,
                                     v1::ListRunsReply* reply) override;
  grpc::ServerUnaryReactor* ShowRun(grpc::CallbackServerContext* context,
                                    const v1::ShowRunRequest* request,
                                    v1::RunRecord* reply) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context,
                                   const v1::CancelRequest* request,
                                   v1::CancelReply* reply) override;
  grpc::ServerUnaryReactor* Compare(grpc::CallbackServerContext* context,
                                    const v1::CompareRequest* request, v1::Report* reply) override;
  grpc::ServerUnaryReactor* Hosts(grpc::CallbackServerContext* context,
                                  const v1::HostsRequest* request, v1::HostsReply* reply) override;

 private:
  Brain* const brain_;
  Jobs* const jobs_;
  std::atomic<std::uint64_t> next_watch_{1};
};

}  // namespace labrack::api
