#include "agent/worker/result_size.h"

#include <algorithm>

#include "proto/convert/convert.h"
#include "storage/base/histogram.h"

namespace labrack::worker {
namespace {

void MergeInto(v1::IntervalOperation& into, const v1::IntervalOperation& from) {
  into.set_count(into.count() + from.count());
  into.set_bytes(into.bytes() + from.bytes());
  if (!from.has_service()) return;
  if (!into.has_service()) {
    *into.mutable_service() = from.service();
    return;
  }
  Result<Histogram> a = convert::FromMessage(into.service());
  const Result<Histogram> b = convert::FromMessage(from.service());
  if (!a || !b) return;  // our own engine wrote them
  a->Merge(*b);
  *into.mutable_service() = convert::ToMessage(*a);
}

void MergePairs(v1::StepResult& step) {
  google::protobuf::RepeatedPtrField<v1::Interval> merged;
  for (int i = 0; i < step.intervals_size(); ++i) {
    v1::Interval* interval = merged.Add();
    *interval = step.intervals(i);
    if (i + 1 == step.intervals_size()) break;
    const v1::Interval& second = step.intervals(i + 1);
    // What was late is no part of the measured window's rate.
    if (second.begin_mono_ns() >= step.measure_end_mono_ns()) continue;
    ++i;
    interval->set_end_mono_ns(second.end_mono_ns());
    for (const v1::IntervalOperation& operation : second.operations()) {
      auto same = std::find_if(interval->mutable_operations()->begin(),
                               interval->mutable_operations()->end(),
                               [&](const v1::IntervalOperation& candidate) {
                                 return candidate.operation() == operation.operation();
                               });
      if (same == interval->mutable_operations()->end()) {
        *interval->add_operations() = operation;
      } else {
        MergeInto(*same, operation);
      }
    }
  }
  step.mutable_intervals()->Swap(&merged);
}

}  // namespace

void FitResult(v1::AssignmentResult& result, Bytes size_max) {
  while (result.ByteSizeLong() > size_max.size()) {
    bool shorter = false;
    for (v1::StepResult& step : *result.mutable_steps()) {
      const int before = step.intervals_size();
      MergePairs(step);
      shorter = shorter || step.intervals_size() < before;
    }
    if (!shorter) break;
  }
  if (result.ByteSizeLong() <= size_max.size()) return;
  for (v1::StepResult& step : *result.mutable_steps()) {
    step.clear_output_tail();
    step.clear_intervals();
  }
}

}  // namespace labrack::worker
