// A playbook as the command line takes it: read with the files that it names, and its problems
// shown at their places.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/options.h"
#include "controller/plan/playbook_loader.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/config/source.h"

namespace labrack::cli {

// The playbook's text and what goes with it. A file that cannot be read is a problem. Job files
// that cannot be read are left out; checking the playbook then says which one is missing. So are
// those outside of the playbook's directory, whose reasons go into `refused`: a foreign playbook
// must not attach its reader's files.
bool ReadPlaybook(const std::string& path, const std::vector<std::string>& sets,
                  std::uint32_t trials, v1::PlaybookSource& source, plan::RefusedFiles& refused,
                  config::Problems& problems);

// Problems as a controller sent them.
config::Problems ProblemsOf(const v1::PlanReply& reply);

// Workflow commands of GitHub, which keeps ten a step: the first ten and a count.
std::string ProblemsGithub(const config::Problems& problems);

}  // namespace labrack::cli
