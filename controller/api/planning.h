// Planning as the control port offers it: a playbook's source and the fleet in, a PlanReply out.
// Pure, but it may take a while: for the jobs' thread.
#pragma once

#include <cstdint>

#include "controller/plan/planner.h"
#include "labrack/v1/control.pb.h"

namespace labrack::api {

// Without problems, reply.plan is set.
v1::PlanReply PlanFor(const v1::PlaybookSource& source, std::uint64_t seed,
                      const plan::FleetView& fleet);

}  // namespace labrack::api
