// Names by which the plan, the workers, the comparison and people know the same things.
#pragma once

#include <string>

#include "labrack/v1/plan.pb.h"

namespace labrack::convert {

// "ext4/pages block=4KiB": stack, workload and parameters of the matrix. One cell of a plan has one
// name; two runs may use a name for different things (controller/compare/match.h).
std::string CellName(const v1::PlannedCell& cell);

}  // namespace labrack::convert
