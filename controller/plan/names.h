// Names that the plan, the workers, the comparison and people use for the same things; those of
// cells are in proto/convert/names.h.
#pragma once

#include <string>
#include <vector>

#include "labrack/v1/plan.pb.h"
#include "labrack/v1/workload.pb.h"

namespace labrack::plan {

// The measured steps of a workload, in the order in which they run:
//   stream: "write" or "read"    copy: "copy"        checksum: "checksum"    random: "mix"
//   sync_pages: "write"          files: those of create, stat, read, delete that are asked for
//   fio: "fio", with figures by job        exec: "exec"
// Never empty for a playbook that has been loaded.
std::vector<std::string> StepNames(const v1::Workload& workload);

// "stream", "fio", ...: the kind as it is written in a playbook; empty when none is set.
std::string WorkloadKind(const v1::Workload& workload);
// "ext4", "dir", "raid5", ...: likewise.
std::string StackKind(const v1::Stack& stack);
// What agents call it when they say what they can build (v1::StackSupport).
std::string SupportKind(const v1::Stack& stack);

}  // namespace labrack::plan
