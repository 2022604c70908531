// fio: the real fio runs a job file in the stack's directory; its report is imported
// (fio_import.h). One process runs all jobs of the file, so they are one step; the jobs stay
// visible as figures.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "agent/workload/external.h"
#include "agent/workload/fio_import.h"
#include "agent/workload/workloads.h"
#include "proto/fio/fio_job.h"

namespace labrack::workload {
namespace {

constexpr Bytes kReportMax = 64_MiB;

class Fio final : public Workload {
 public:
  Fio(const v1::FioWorkload& spec, Setup setup, bool verifies)
      : spec_(spec), setup_(setup), verifies_(verifies) {
    const std::filesystem::path& scratch = setup.target.scratch;
    const std::filesystem::path place = scratch.empty() ? setup.target.directory : scratch;
    job_path_ = std::filesystem::absolute(place / "labrack.fio");
    report_path_ = std::filesystem::absolute(place / "labrack-fio.json");
  }

  std::vector<StepInfo> Steps() const override { return {{.name = "fio", .has_warm_up = false}}; }
  Result<LayOutReport> LayOut(const StepContext& context) override;
  bool WantsColdCache(std::size_t) const override { return false; }
  StepOutcome RunStep(std::size_t step, const StepContext& context) override;
  std::size_t VerifyAfter() const override { return 0; }
  Result<VerifyReport> Verify(const StepContext& context) override;
  std::vector<v1::Warning> Warnings() const override { return {}; }

 private:
  Result<FioReport> ReadReport() const;

  v1::FioWorkload spec_;
  Setup setup_;
  bool verifies_;  // a job has `verify`, and fio fails when the data is wrong
  bool done_ = false;
  std::filesystem::path job_path_;
  std::filesystem::path report_path_;
};

// fio lays its own files out.
Result<LayOutReport> Fio::LayOut(const StepContext&) {
  std::ofstream job(job_path_, std::ios::trunc);
  job << spec_.job() << '\n';
  job.close();
  if (!job) return Fail(Errc::kIo, job_path_.string(), "the job file could not be written");
  return LayOutReport{};
}

StepOutcome Fio::RunStep(std::size_t, const StepContext& context) {
  StepOutcome outcome;
  v1::StepResult& result = outcome.result;
  result.set_step("fio");
  result.set_primary(v1::PRIMARY_METRIC_OPERATIONS_PER_SECOND);
  std::error_code ignored;
  std::filesystem::remove(report_path_, ignored);  // an old report must not pass for a new one
  // fio runs in the stack's directory, so "." is it, whatever characters its path has.
  RunExternal(setup_, context,
              {"fio", "--directory=.", "--output-format=json+", "--eta=never",
               "--output=" + report_path_.string(), job_path_.string()},
              Nanoseconds(spec_.timeout()), outcome);
  if (!outcome.status) return outcome;
  Result<FioReport> report = ReadReport();
  if (!report) {
    outcome.status = std::unexpected(report.error());
    return outcome;
  }
  for (v1::OperationResult& operation : report->operations) {
    if (operation.operation() == "read") outcome.moved.read += Bytes(operation.bytes());
    if (operation.operation() == "write") outcome.moved.written += Bytes(operation.bytes());
    *result.add_operations() = std::move(operation);
  }
  for (v1::Figure& figure : report->figures) *result.add_figures() = std::move(figure);
  for (std::string& name : report->counted) result.add_counted(std::move(name));
  // The window of the rates is that in which jobs ran, without fio's own lay-out before it.
  if (report->window > Nanoseconds(0)) {
    result.set_measure_begin_mono_ns(std::max(
        result.measure_begin_mono_ns(), result.measure_end_mono_ns() - report->window.count()));
  }
  done_ = true;
  return outcome;
}

Result<FioReport> Fio::ReadReport() const {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(report_path_, error);
  if (error) return Fail(Errc::kNotFound, report_path_.string(), "fio wrote no report");
  if (size > kReportMax.count()) {
    return Fail(
        Errc::kExhausted, report_path_.string(),
        fmt::format("fio's report has {} bytes, at most {} are read", size, kReportMax.count()));
  }
  std::ifstream file(report_path_, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return Fail(Errc::kIo, report_path_.string(), "fio's report could not be read");
  return ImportFioJson(text.view());
}

Result<VerifyReport> Fio::Verify(const StepContext&) {
  if (verifies_ && done_) {
    return VerifyReport{.outcome = v1::VERIFY_OUTCOME_MATCHED,
                        .detail = "fio verified its data (`verify` in the job file)",
                        .bytes = {}};
  }
  return VerifyReport{.outcome = v1::VERIFY_OUTCOME_NOT_POSSIBLE,
                      .detail = "the job file has no `verify`",
                      .bytes = {}};
}

bool Verifies(const fio::FioJobFile& file) {
  for (const fio::FioJob& job : file.jobs) {
    const std::string* kind = job.Find("verify");
    if (kind != nullptr && *kind != "0" && *kind != "null") return true;
  }
  return false;
}

std::string AtLine(const fio::FioFinding& finding) {
  return fmt::format("job file, line {}", finding.line);
}

}  // namespace

// The planner has checked the same; but what runs on this host is decided on this host.
MadeWorkload MakeFio(const v1::Workload& spec, const Setup& setup) {
  const fio::FioJobFile file = fio::ParseFioJob(spec.fio().job());
  if (!file.problems.empty()) {
    const fio::FioFinding& first = file.problems.front();
    return Fail(Errc::kInvalidArgument, AtLine(first), first.message + "; " + first.help);
  }
  if (!file.commands.empty() && !setup.target.allow_exec) {
    const fio::FioFinding& first = file.commands.front();
    return Fail(Errc::kPermissionDenied, AtLine(first),
                first.message +
                    ", which this agent does not do for playbooks; `allow_exec: true` "
                    "in its configuration would let it");
  }
  return std::make_unique<Fio>(spec.fio(), setup, Verifies(file));
}

}  // namespace labrack::workload
