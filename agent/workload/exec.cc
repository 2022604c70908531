// exec: any command, run without a shell in the stack's directory, timed.
#include <fmt/format.h>

#include "agent/workload/external.h"
#include "agent/workload/figures.h"
#include "agent/workload/workloads.h"
#include "proto/convert/convert.h"

namespace labrack::workload {
namespace {

constexpr std::string_view kDirectoryWord = "{dir}";

class Exec final : public Workload {
 public:
  Exec(const v1::ExecWorkload& spec, Setup setup, FigureReader figures)
      : spec_(spec), setup_(setup), figures_(std::move(figures)) {}

  std::vector<StepInfo> Steps() const override { return {{.name = "exec", .has_warm_up = false}}; }
  Result<LayOutReport> LayOut(const StepContext& context) override;
  bool WantsColdCache(std::size_t) const override { return false; }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  std::size_t VerifyAfter() const override { return 0; }
  Result<VerifyReport> Verify(const StepContext&) override {
    return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_POSSIBLE,
                        .detail = "what a command wrote is not known",
                        .bytes = {}};
  }
  std::vector<v1::Warning> Warnings() const override { return {}; }

 private:
  std::vector<std::string> Words(
      const google::protobuf::RepeatedPtrField<std::string>& words) const;

  v1::ExecWorkload spec_;
  Setup setup_;
  FigureReader figures_;
};

std::vector<std::string> Exec::Words(
    const google::protobuf::RepeatedPtrField<std::string>& words) const {
  const std::string directory = setup_.target.directory.string();
  std::vector<std::string> replaced;
  for (std::string word : words) {
    for (std::size_t at = word.find(kDirectoryWord); at != std::string::npos;
         at = word.find(kDirectoryWord, at + directory.size())) {
      word.replace(at, kDirectoryWord.size(), directory);
    }
    replaced.push_back(std::move(word));
  }
  return replaced;
}

Result<LayOutReport> Exec::LayOut(const StepContext& context) {
  if (spec_.prepare().empty()) return LayOutReport{};
  const Result<exec::Outcome> ran = exec::RunChecked({.words = Words(spec_.prepare()),
                                                      .directory = setup_.target.directory,
                                                      .environment = {},
                                                      .timeout = Nanoseconds(spec_.timeout()),
                                                      .cancel = context.cancel});
  if (!ran) return std::unexpected(ran.error());
  return LayOutReport{};
}

StepOutcome Exec::RunStep(std::size_t, const StepContext& context) {
  StepOutcome outcome;
  v1::StepResult& result = outcome.result;
  result.set_step("exec");
  result.set_primary(v1::PRIMARY_METRIC_SECONDS);
  result.add_counted("run");
  const exec::Outcome ran =
      RunExternal(setup_, context, Words(spec_.command()), Nanoseconds(spec_.timeout()), outcome);
  if (!outcome.status) return outcome;
  Histogram service;
  service.Record(ran.wall);
  v1::OperationResult& run = *result.add_operations();
  run.set_operation("run");
  run.set_count(1);
  *run.mutable_service() = convert::ToMessage(service);
  Result<std::vector<v1::Figure>> figures = figures_.Read(ran.output + "\n" + ran.errors);
  if (!figures) {
    outcome.status = std::unexpected(figures.error());
    return outcome;
  }
  for (v1::Figure& figure : *figures) *result.add_figures() = std::move(figure);
  return outcome;
}

}  // namespace

MadeWorkload MakeExec(const v1::Workload& spec, const Setup& setup) {
  if (!setup.target.allow_exec) {
    return Fail(Errc::kPermissionDenied, spec.name(),
                "this agent runs no commands for playbooks; `allow_exec: true` in its "
                "configuration would let it");
  }
  if (spec.exec().command().empty()) {
    return Fail(Errc::kInvalidArgument, spec.name(), "`command` is empty");
  }
  Result<FigureReader> figures =
      FigureReader::Create({spec.exec().figures().begin(), spec.exec().figures().end()});
  if (!figures) return std::unexpected(figures.error());
  return std::make_unique<Exec>(spec.exec(), setup, *std::move(figures));
}

}  // namespace labrack::workload
