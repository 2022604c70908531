// A catalog without a controller: what verbs that look ask, answered in this process. Nothing is
// locked, started or changed, so that several look at once, beside a controller that writes, and
// without write access.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "controller/api/reports.h"
#include "controller/catalog/reader.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/result.h"

namespace labrack::api {

class Archive {
 public:
  // `state`: a controller's state directory. One without a catalog has no runs. Null when an older
  // build wrote the catalog: starting a controller brings it up to date. Errors: kUnsupported when
  // a newer build wrote it.
  static Result<std::unique_ptr<Archive>> Open(const std::filesystem::path& state);
  ~Archive();

  // Whether a controller works on the catalog now.
  Result<bool> IsHeld() const;
  // As the control port answers (control.proto).
  Result<v1::ListRunsReply> ListRuns(std::uint32_t limit);
  Result<v1::RunRecord> ShowRun(const std::string& run_id, v1::RecordLevel level);
  Result<v1::RunRecord> FetchRun(const std::string& run_id);  // with all results, in memory
  Result<v1::Report> Compare(const std::string& base_run, const std::string& test_run);

 private:
  Archive(std::filesystem::path state, std::unique_ptr<catalog::Reader> reader);

  std::filesystem::path state_;
  std::unique_ptr<catalog::Reader> reader_;  // null: no catalog yet
  Reports reports_;
};

// The whole of a run that is not under way, as one event of Watch.
v1::RunEvent WholeOf(v1::RunRecord record);

}  // namespace labrack::api
