// Lists for the command line: runs, hosts, disks, one run's trials, a plan. Pure functions from
// messages to text; the JSON of a list is the message itself (json.h).
#pragma once

#include <string>

#include "controller/report/style.h"
#include "labrack/v1/control.pb.h"

namespace labrack::report {

// What a run is that has not ended: under way, or left by whoever ran it. Its reason says how then.
enum class Unfinished { kGoesOn, kLeft };

// One line a run, newest first, as the controller gave them; below, why some were left.
std::string FormatRuns(const v1::ListRunsReply& runs, Unfinished unfinished);
// The state of one run and of each of its trials.
std::string FormatStatus(const v1::RunRecord& run, Unfinished unfinished);
// One line a host; and everything about one.
std::string FormatHosts(const v1::HostsReply& hosts);
std::string FormatHost(const v1::HostRecord& host);
// One line a disk that is lent, or would be and is refused, with the reason.
std::string FormatDisks(const v1::HostsReply& hosts);
// The models that any host has, each once, in the order of the first that has it.
std::string FormatModels(const v1::HostsReply& hosts);
std::string FormatModelsJson(const v1::HostsReply& hosts);
// What a run would do: every disk, the bytes to be written, each cell and the order of the trials.
std::string FormatPlan(const v1::Plan& plan);

// "2026-11-30 20:22:05Z"; "-" for 0.
std::string FormatWallTime(std::int64_t wall_ns);
// "done", "running", ...
std::string FormatRunState(v1::RunState state);

}  // namespace labrack::report
