#include "agent/workload/external.h"

#include <algorithm>

namespace labrack::workload {
namespace {

std::int64_t MonoNs(TimePoint at) { return at.time_since_epoch().count(); }

// The end of what the command said, errors last, since they explain the most.
std::string OutputTail(const exec::Outcome& ran) {
  std::string text = ran.output;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += ran.errors;
  if (text.size() > kOutputTailMax) text.erase(0, text.size() - kOutputTailMax);
  // Protobuf strings are UTF-8; a command may print anything.
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

Result<void> StatusOf(const exec::Outcome& ran) {
  if (ran.ok()) return {};
  Errc code = Errc::kIo;
  if (ran.timed_out) code = Errc::kTimedOut;
  if (ran.cancelled) code = Errc::kCancelled;
  return Fail(code, ran.Describe());
}

}  // namespace

exec::Outcome RunExternal(const Setup& setup, const StepContext& context,
                          std::vector<std::string> words, Nanoseconds timeout,
                          StepOutcome& outcome) {
  v1::StepResult& result = outcome.result;
  outcome.status = RunOne(*setup.launcher, setup.env->SleepUntil(context.start, context.cancel));
  if (!outcome.status) return {};
  if (context.progress != nullptr) context.progress->Reset();
  const TimePoint begin = setup.env->Now();
  if (context.enter) context.enter(v1::PHASE_MEASURE, begin);
  Result<exec::Outcome> ran = exec::Run({.words = std::move(words),
                                         .directory = setup.target.directory,
                                         .environment = {},
                                         .timeout = timeout,
                                         .cancel = context.cancel});
  const TimePoint end = setup.env->Now();
  if (context.enter) context.enter(v1::PHASE_DRAIN, end);
  result.set_measure_begin_mono_ns(MonoNs(begin));
  result.set_measure_end_mono_ns(MonoNs(end));
  if (context.barrier) result.set_intended_start_mono_ns(MonoNs(context.start));
  if (!ran) {
    outcome.status = std::unexpected(ran.error());
    return {};
  }
  result.set_measure_end_mono_ns(MonoNs(begin + std::min(ran->wall, end - begin)));
  *result.mutable_cpu() = ran->cpu;
  result.set_exit_code(ran->exit_code);
  result.set_output_tail(OutputTail(*ran));
  outcome.status = StatusOf(*ran);
  return *std::move(ran);
}

}  // namespace labrack::workload
