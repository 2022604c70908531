// fio's job files are read alike by the planner and by the agents, which do not trust each other:
// proto/fio/fio_job.h.
#pragma once

#include "proto/fio/fio_job.h"

namespace labrack::plan {

using fio::FioFinding;
using fio::FioJob;
using fio::FioJobFile;
using fio::FioOption;
using fio::ParseFioJob;
using fio::ParseFioSize;
using fio::ParseFioTime;

}  // namespace labrack::plan
