#include "controller/api/archive.h"

#include <utility>

#include "controller/api/answers.h"
#include "controller/catalog/catalog.h"

namespace labrack::api {
namespace {

Error NoSuchRun(const std::string& id) {
  return Error(Errc::kNotFound, id, "there is no such run, nor any other yet");
}

}  // namespace

Result<std::unique_ptr<Archive>> Archive::Open(const std::filesystem::path& state) {
  const Result<bool> exists = catalog::Exists(state);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return std::unique_ptr<Archive>(new Archive(state, nullptr));
  const Result<bool> up_to_date = catalog::IsUpToDate(state);
  if (!up_to_date) return std::unexpected(up_to_date.error());
  if (!*up_to_date) return nullptr;
  Result<std::unique_ptr<catalog::Reader>> reader = catalog::Reader::Open(state);
  if (!reader) return std::unexpected(reader.error());
  return std::unique_ptr<Archive>(new Archive(state, *std::move(reader)));
}

Archive::Archive(std::filesystem::path state, std::unique_ptr<catalog::Reader> reader)
    : state_(std::move(state)), reader_(std::move(reader)) {}
Archive::~Archive() = default;

Result<bool> Archive::IsHeld() const { return catalog::IsHeld(state_); }

Result<v1::ListRunsReply> Archive::ListRuns(std::uint32_t limit) {
  return reader_ ? AnswerListRuns(*reader_, limit) : v1::ListRunsReply();
}

Result<v1::RunRecord> Archive::ShowRun(const std::string& run_id, v1::RecordLevel level) {
  if (!reader_) return std::unexpected(NoSuchRun(run_id));
  v1::ShowRunRequest request;
  request.set_run_id(run_id);
  request.set_level(level);
  return AnswerShowRun(*reader_, request);
}

Result<v1::RunRecord> Archive::FetchRun(const std::string& run_id) {
  return ShowRun(run_id, v1::RECORD_LEVEL_RESULTS);
}

Result<v1::Report> Archive::Compare(const std::string& base_run, const std::string& test_run) {
  if (!reader_) return std::unexpected(NoSuchRun(base_run));
  return reports_.Of(*reader_, base_run, test_run);
}

v1::RunEvent WholeOf(v1::RunRecord record) {
  v1::RunEvent event;
  event.set_wall_ns(record.summary().ended_wall_ns());
  event.mutable_summary()->Swap(record.mutable_summary());
  for (v1::TrialRecord& trial : *record.mutable_trials()) {
    event.add_trials()->Swap(trial.mutable_summary());
  }
  return event;
}

}  // namespace labrack::api
