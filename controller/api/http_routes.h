// What the http port answers, from the loop and the jobs' thread. Handlers run on http threads and
// may wait, for a bounded time.
#pragma once

#include <string>

#include "controller/api/brain.h"
#include "controller/api/jobs.h"
#include "controller/api/metrics.h"
#include "controller/http/server.h"

namespace labrack::api {

inline constexpr Nanoseconds kHttpWaitMax = std::chrono::seconds(10);
// An agent that was away for longer is no target any more.
inline constexpr Nanoseconds kTargetForgottenAfter = std::chrono::hours(1);

// `own_address` is asked for at each request, since the port is known only once http listens.
http::Routes MakeRoutes(Brain* brain, Jobs* jobs, Metrics* metrics,
                        std::function<std::string()> own_address);

}  // namespace labrack::api
