// What is answered from the catalog alone: the same for a controller's jobs and for whoever reads a
// catalog without one (archive.h).
#pragma once

#include <cstdint>
#include <string>

#include "controller/catalog/reader.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/result.h"

namespace labrack::api {

inline constexpr std::uint32_t kListLimit = 100;  // where 0 is asked for
inline constexpr std::uint32_t kListLimitMax = 10'000;

Result<v1::ListRunsReply> AnswerListRuns(catalog::Reader& reader, std::uint32_t limit);
// A page where one is asked for; else the whole run up to the level.
Result<v1::RunRecord> AnswerShowRun(catalog::Reader& reader, const v1::ShowRunRequest& request);

}  // namespace labrack::api
