#include "controller/cli/records.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "controller/api/archive.h"
#include "controller/cli/lab_lock.h"
#include "controller/cli/run_state.h"

namespace labrack::cli {
namespace {

constexpr const char* kLeftReason =
    "left by a lab that was killed; the next `labrack run` cancels it";

// The catalog, brought up to date first where it must be. Null: another lab may be at that.
Result<std::unique_ptr<api::Archive>> OpenArchive(const std::filesystem::path& state) {
  Result<std::unique_ptr<api::Archive>> archive = api::Archive::Open(CatalogDirectory(state));
  if (!archive || *archive) return archive;
  const Result<std::unique_ptr<Lab>> lab = Lab::OpenAlone(state, api::OpenRuns::kLeaveAlone);
  if (!lab) {
    return Fail(lab.error().code(), lab.error().subject(),
                fmt::format("an older labrack wrote the catalog here, and it cannot be brought up "
                            "to date: {}",
                            lab.error().note()));
  }
  return *lab ? api::Archive::Open(CatalogDirectory(state)) : nullptr;
}

}  // namespace

Records::Records(std::filesystem::path state, std::unique_ptr<Client> client,
                 std::unique_ptr<api::Archive> archive)
    : state_(std::move(state)), client_(std::move(client)), archive_(std::move(archive)) {}
Records::~Records() = default;
Records::Records(Records&& other) noexcept = default;
Records& Records::operator=(Records&& other) noexcept = default;

Result<Records> Records::Open(const Call& call) {
  if (const std::optional<std::string> address = call.arguments.Text("controller")) {
    return Records({}, std::make_unique<Client>(*address), nullptr);
  }
  const Result<std::filesystem::path> state = StateDirectory(call);
  if (!state) return std::unexpected(state.error());
  return OpenHere(*state);
}

Result<Records> Records::OpenHere(const std::filesystem::path& state) {
  const TimePoint until = MonotonicClock().Now() + kLabTurnLimit;
  for (;;) {
    const Result<LabHolder> holder = LookAtLab(state);
    if (!holder) return std::unexpected(holder.error());
    if (holder->state == LabState::kOpen) {
      return Records(state, std::make_unique<Client>(holder->control_address), nullptr);
    }
    if (holder->state != LabState::kStarting) {
      Result<std::unique_ptr<api::Archive>> archive = OpenArchive(state);
      if (!archive) return std::unexpected(archive.error());
      if (*archive) return Records(state, nullptr, *std::move(archive));
    }
    if (MonotonicClock().Now() >= until) return std::unexpected(LabIsTaken(state, *holder));
    std::this_thread::sleep_for(kLabTurnPoll);
  }
}

// After the catalog was read: when no lab was open before, and none is now, then nobody carries on
// what has not ended.
Result<void> Records::LookForLab() {
  const Result<LabHolder> holder = LookAtLab(state_);
  if (!holder) return std::unexpected(holder.error());
  const Result<bool> held = archive_->IsHeld();
  if (!held) return std::unexpected(held.error());
  const bool nobody =
      holder->state == LabState::kPrivate || (holder->state == LabState::kNone && !*held);
  unfinished_ = nobody ? report::Unfinished::kLeft : report::Unfinished::kGoesOn;
  return {};
}

void Records::Mark(v1::RunSummary& run) const {
  if (unfinished_ == report::Unfinished::kGoesOn || HasEnded(run.state())) return;
  run.set_reason(run.reason().empty() ? kLeftReason
                                      : fmt::format("{} ({})", kLeftReason, run.reason()));
}

void Records::Mark(const v1::RunSummary& run, v1::Report& report) const {
  if (unfinished_ == report::Unfinished::kGoesOn || HasEnded(run.state())) return;
  v1::SkippedItem& item = *report.add_skipped();
  item.set_what(run.run_id());
  item.set_kind("failed");
  item.set_reason(fmt::format("unfinished, {}", kLeftReason));
  // Before the trials that are missing for that reason.
  std::rotate(report.mutable_skipped()->rbegin(), report.mutable_skipped()->rbegin() + 1,
              report.mutable_skipped()->rend());
  report.set_verdict("INVALID");
  report.set_exit_code(ToInt(ExitCode::kLabFailed));
  report.set_exit_code_strict(ToInt(ExitCode::kLabFailed));
}

// Whether the lab that was asked has ended, and the catalog can be asked in its place.
bool Records::TurnToArchive() {
  if (state_.empty()) return false;
  Result<Records> now = OpenHere(state_);
  if (!now || !now->archive_) return false;
  *this = *std::move(now);
  return true;
}

// `question` takes a Client or an Archive.
template <typename Reply, typename Question>
Result<Reply> Records::Ask(Question question) {
  if (client_) {
    Result<Reply> reply = question(*client_);
    if (reply || reply.error().code() != Errc::kUnavailable || !TurnToArchive()) return reply;
  }
  Result<Reply> reply = question(*archive_);
  if (!reply) return reply;
  if (Result<void> looked = LookForLab(); !looked) return std::unexpected(looked.error());
  return reply;
}

Result<v1::ListRunsReply> Records::ListRuns(std::uint32_t limit) {
  Result<v1::ListRunsReply> runs =
      Ask<v1::ListRunsReply>([&](auto& records) { return records.ListRuns(limit); });
  if (!runs) return runs;
  for (v1::RunSummary& run : *runs->mutable_runs()) Mark(run);
  return runs;
}

Result<v1::RunRecord> Records::ShowRun(const std::string& run_id, v1::RecordLevel level) {
  Result<v1::RunRecord> run =
      Ask<v1::RunRecord>([&](auto& records) { return records.ShowRun(run_id, level); });
  if (run) Mark(*run->mutable_summary());
  return run;
}

Result<v1::RunRecord> Records::FetchRun(const std::string& run_id) {
  Result<v1::RunRecord> run =
      Ask<v1::RunRecord>([&](auto& records) { return records.FetchRun(run_id); });
  if (run) Mark(*run->mutable_summary());
  return run;
}

Result<v1::Report> Records::Compare(const std::string& base_run, const std::string& test_run) {
  Result<v1::Report> report =
      Ask<v1::Report>([&](auto& records) { return records.Compare(base_run, test_run); });
  if (!report) return report;
  Mark(*report->mutable_run());
  Mark(report->run(), *report);
  if (!report->has_test_run()) return report;
  Mark(*report->mutable_test_run());
  Mark(report->test_run(), *report);
  return report;
}

}  // namespace labrack::cli
