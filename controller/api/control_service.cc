#include "controller/api/control_service.h"

#include <memory>
#include <string>
#include <utility>

#include "controller/api/answers.h"
#include "controller/api/planning.h"

namespace labrack::api {
namespace {

template <typename Reply>
void Answer(Call<Reply> call, Result<Reply> result) {
  if (result) {
    call.Done(*std::move(result));
  } else {
    call.Fail(result.error());
  }
}

}  // namespace

grpc::ServerUnaryReactor* ControlService::PlanRun(grpc::CallbackServerContext* context,
                                                  const v1::PlanRequest* request,
                                                  v1::PlanReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  brain_->Post([this, request = *request, call = std::move(call)]() mutable {
    jobs_->Post([request = std::move(request), fleet = brain_->FleetHosts(),
                 call = std::move(call)](catalog::Reader&) mutable {
      call.Done(PlanFor(request.source(), request.seed(), fleet));
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Submit(grpc::CallbackServerContext* context,
                                                 const v1::SubmitRequest* request,
                                                 v1::SubmitReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  brain_->Post([this, request = *request, call = std::move(call)]() mutable {
    if (brain_->AnswerExisting(request.idempotency_key(), call)) return;
    jobs_->Post([this, request = std::move(request), fleet = brain_->FleetHosts(),
                 call = std::move(call)](catalog::Reader&) mutable {
      v1::PlanReply plan = PlanFor(request.source(), request.seed(), fleet);
      if (!plan.has_plan()) {
        call.reply().mutable_plan()->Swap(&plan);
        call.Done();
        return;
      }
      brain_->Post([this, request = std::move(request), plan = std::move(plan),
                    call = std::move(call)]() mutable {
        brain_->Submit(request, std::move(plan), std::move(call));
      });
    });
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::RunEvent>* ControlService::Watch(grpc::CallbackServerContext*,
                                                              const v1::WatchRequest* request) {
  const std::uint64_t id = next_watch_.fetch_add(1);
  std::shared_ptr<Watcher> watcher = Watcher::Start(
      [brain = brain_, id] { brain->PostAlways([brain, id] { brain->CloseWatch(id); }); });
  const bool posted = brain_->Post([brain = brain_, id, run_id = request->run_id(), watcher] {
    brain->OpenWatch(id, run_id, watcher);
  });
  if (!posted) watcher->End({grpc::StatusCode::UNAVAILABLE, "the controller is too busy"});
  return watcher.get();
}

grpc::ServerUnaryReactor* ControlService::ListRuns(grpc::CallbackServerContext* context,
                                                   const v1::ListRunsRequest* request,
                                                   v1::ListRunsReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  jobs_->Post([limit = request->limit(), call = std::move(call)](catalog::Reader& reader) mutable {
    Answer(std::move(call), AnswerListRuns(reader, limit));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::ShowRun(grpc::CallbackServerContext* context,
                                                  const v1::ShowRunRequest* request,
                                                  v1::RunRecord* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  jobs_->Post([request = *request, call = std::move(call)](catalog::Reader& reader) mutable {
    Answer(std::move(call), AnswerShowRun(reader, request));
  });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Cancel(grpc::CallbackServerContext* context,
                                                 const v1::CancelRequest* request,
                                                 v1::CancelReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  brain_->Post(
      [brain = brain_, request = *request, who = context->peer(),
       call = std::move(call)]() mutable { brain->Cancel(request, who, std::move(call)); });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Compare(grpc::CallbackServerContext* context,
                                                  const v1::CompareRequest* request,
                                                  v1::Report* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  jobs_->Post(
      [jobs = jobs_, request = *request, call = std::move(call)](catalog::Reader& reader) mutable {
        Answer(std::move(call), jobs->reports().Of(reader, request.base_run(), request.test_run()));
      });
  return reactor;
}

grpc::ServerUnaryReactor* ControlService::Hosts(grpc::CallbackServerContext* context,
                                                const v1::HostsRequest*, v1::HostsReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Call call(reactor, reply);
  brain_->Post([brain = brain_, call = std::move(call)]() mutable { call.Done(brain->Hosts()); });
  return reactor;
}

}  // namespace labrack::api
