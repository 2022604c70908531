// Between our own types and what crosses a process boundary.
#pragma once

#include <grpcpp/support/status.h>

#include "labrack/v1/result.pb.h"
#include "storage/base/histogram.h"
#include "storage/base/result.h"

namespace labrack::convert {

constexpr std::uint32_t kHistogramLayout = 1;  // storage/base/histogram.h

v1::HistogramData ToMessage(const Histogram& histogram);
// Errors: kCorrupt for another layout, bucket indexes out of range, or lists of unequal length.
Result<Histogram> FromMessage(const v1::HistogramData& message);

// At the edge only: Error becomes grpc::Status, and back. The code survives the round trip.
grpc::Status ToStatus(const Error& error);
Error FromStatus(const grpc::Status& status);

}  // namespace labrack::convert
