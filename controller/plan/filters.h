// include and exclude: which cells are run.
#pragma once

#include "controller/plan/gates.h"
#include "controller/plan/loaded_playbook.h"
#include "controller/plan/reporter.h"
#include "controller/plan/substitution.h"

namespace labrack::plan {

// Takes the cells out that filters leave out. A filter that names what is not there, says nothing
// or matches no cell is a problem, since it is a misunderstanding.
void ApplyFilters(LoadedPlaybook& playbook, const GivenNames& names, const Names& axes,
                  Reporter& reporter);

}  // namespace labrack::plan
