// The size of a result, whoever writes it: the worker, or the agent in place of one that died.
#pragma once

#include "labrack/v1/result.pb.h"
#include "storage/base/bytes.h"

namespace labrack::worker {

// The result must fit one record of the spool and one message to the controller.
constexpr Bytes kResultMax = 900_KiB;

// Makes the result fit one message: neighbouring intervals are merged, pair by pair, until it does;
// sums stay what they were. Tails of outputs go last.
void FitResult(v1::AssignmentResult& result, Bytes size_max = kResultMax);

}  // namespace labrack::worker
