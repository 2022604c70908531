// Goal: what fio reports is imported exactly, whatever stands around its JSON, and nothing that is
// incomplete passes for a result. Method: reports as fio writes them, shortened, with the troubles
// that users met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/workload/fio_import.h"
#include "agent/workload/workload.h"
#include "proto/convert/convert.h"
#include "storage/runtime/host_env.h"

namespace labrack::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Direction(std::uint64_t ios, std::uint64_t bytes, std::uint64_t runtime_ms,
                      const std::string& bins, std::uint64_t count) {
  return R"({"io_bytes": )" + std::to_string(bytes) + R"(, "total_ios": )" + std::to_string(ios) +
         R"(, "runtime": )" + std::to_string(runtime_ms) +
         R"(, "short_ios": 0, "drop_ios": 0,
            "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
            "clat_ns": {"min": 1000, "max": 9000, "mean": 2000.5, "stddev": 1.0, "N": )" +
         std::to_string(count) + R"(, "percentile": {"99.000000": 4016}, "bins": {)" + bins +
         R"(}}, "lat_ns": {"min": 1000, "max": 9000, "mean": 2100.0, "stddev": 1.0, "N": )" +
         std::to_string(count) + "}}";
}
const std::string kNone = Direction(0, 0, 0, "", 0);

std::string Job(const std::string& name, int group, const std::string& read,
                const std::string& write) {
  return R"({"jobname": ")" + name + R"(", "groupid": )" + std::to_string(group) +
         R"(, "error": 0, "job options": {"rw": "randrw", "x": "{\"}"}, "read": )" + read +
         R"(, "write": )" + write + R"(, "trim": )" + kNone +
         R"(, "sync": {"total_ios": 0, "lat_ns": {"min": 0, "max": 0, "N": 0}},
            "usr_cpu": 1.5, "sys_cpu": 8.25, "ctx": 7})";
}
std::string Report(const std::string& jobs) {
  return R"({"fio version": "fio-3.33", "timestamp": 1, "global options": {}, "jobs": [)" + jobs +
         R"(], "disk_util": [{"name": "vda", "util": 99.0}]})";
}
const std::string kRead = Direction(10, 40960, 2000, R"("1008": 3, "2040": 6, "9088": 1)", 10);
const std::string kWrite = Direction(4, 16384, 1000, R"("3024": 4)", 4);

double Figure(const FioReport& report, const std::string& name) {
  for (const v1::Figure& figure : report.figures) {
    if (figure.name() == name) return figure.value();
  }
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

TEST(FioImport, CountsAndLatenciesAreThoseOfFio) {
  const Result<FioReport> report = ImportFioJson(Report(Job("rand", 0, kRead, kWrite)));
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->version, "fio-3.33");
  ASSERT_EQ(report->operations.size(), 2U);
  const v1::OperationResult& read = report->operations[0];
  EXPECT_EQ(read.operation(), "read");
  EXPECT_EQ(read.count(), 10U);
  EXPECT_EQ(read.bytes(), 40960U);
  EXPECT_THAT(report->counted, ElementsAre("read", "write"));
  const Histogram service = convert::FromMessage(read.service()).value();
  EXPECT_EQ(service.count(), 10U);
  EXPECT_EQ(service.min_ns(), 1000U);
  EXPECT_EQ(service.max_ns(), 9000U);
  EXPECT_EQ(service.sum_ns(), 20005U);
  EXPECT_EQ(service.CountAtMost(1016), 3U);
  EXPECT_EQ(service.CountAtMost(2056), 9U);
  EXPECT_EQ(Figure(*report, "rand.read.iops"), 5);
  EXPECT_EQ(Figure(*report, "rand.write.bytes_per_second"), 16384);
  EXPECT_EQ(Figure(*report, "rand.read.latency_mean"), 2000.5);
  EXPECT_EQ(Figure(*report, "rand.sys_cpu"), 8.25);
  EXPECT_EQ(report->window, std::chrono::milliseconds(2000));
}

TEST(FioImport, SkipsWhatStandsAroundTheDocument) {
  const std::string text =
      "fio: this platform does not support process shared mutexes, forcing use of threads.\n"
      "note: {both iodepth >= 1 and synchronous} I/O engine are selected\n" +
      Report(Job("rand", 0, kRead, kNone)) + "\nfio: file \"a\" {exceeds} 32-bit tausworthe\n";
  const Result<FioReport> report = ImportFioJson(text);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->operations[0].count(), 10U);
}

TEST(FioImport, ReadsSeveralDocuments) {
  const std::string text =
      Report(Job("a", 0, kRead, kNone)) + "\n" + Report(Job("b", 0, kRead, kWrite));
  const Result<FioReport> report = ImportFioJson(text);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->operations[0].count(), 20U);
  EXPECT_EQ(report->operations[1].count(), 4U);
  EXPECT_EQ(report->window, std::chrono::milliseconds(4000));
}

TEST(FioImport, GroupsRunOneAfterTheOther) {
  const std::string text = Report(Job("a", 0, kRead, kNone) + "," + Job("b", 0, kNone, kWrite) +
                                  "," + Job("c", 1, kNone, kWrite));
  EXPECT_EQ(ImportFioJson(text)->window, std::chrono::milliseconds(3000));
}

TEST(FioImport, JobsOfOneNameAreAddedUp) {
  const std::string text = Report(Job("a", 0, kRead, kNone) + "," + Job("a", 0, kRead, kNone));
  const Result<FioReport> report = ImportFioJson(text);
  EXPECT_EQ(Figure(*report, "a.read.iops"), 10);
  EXPECT_EQ(Figure(*report, "a.usr_cpu"), 3);
}

TEST(FioImport, WithoutBinsThereAreCountsOnly) {
  std::string text = Report(Job("a", 0, kRead, kNone));
  for (std::size_t at = text.find("\"bins\""); at != std::string::npos;
       at = text.find("\"bins\"")) {
    text.replace(at, 6, "\"none\"");
  }
  const Result<FioReport> report = ImportFioJson(text);
  ASSERT_TRUE(report) << report.error().ToString();
  EXPECT_EQ(report->operations[0].count(), 10U);
  EXPECT_EQ(report->operations[0].service().count_size(), 0);
}

TEST(FioImport, LatenciesBeyondAnHourAreNotClamped) {
  const std::string slow = Direction(2, 8192, 1, R"("1008": 1, "4000000000000": 1)", 2);
  const Result<FioReport> report = ImportFioJson(Report(Job("a", 0, slow, kNone)));
  EXPECT_EQ(report->operations[0].service().overflow_count(), 1U);
}

TEST(FioImport, NothingIncompletePasses) {
  const std::string good = Report(Job("a", 0, kRead, kNone));
  EXPECT_EQ(ImportFioJson("").error().code(), Errc::kCorrupt);
  EXPECT_EQ(ImportFioJson("fio: engine xyz not loadable\n").error().code(), Errc::kCorrupt);
  EXPECT_THAT(ImportFioJson(good.substr(0, good.size() - 20)).error().ToString(),
              HasSubstr("cut off"));
  EXPECT_EQ(ImportFioJson(good + good.substr(0, good.size() / 2)).error().code(), Errc::kCorrupt);
  EXPECT_EQ(ImportFioJson(Report("")).error().code(), Errc::kTimedOut);
  EXPECT_EQ(ImportFioJson(Report(Job("a", 0, kNone, kNone))).error().code(), Errc::kTimedOut);
  const std::string bins = Direction(10, 40960, 2000, R"("1008": 3)", 10);
  EXPECT_THAT(ImportFioJson(Report(Job("a", 0, bins, kNone))).error().ToString(),
              HasSubstr("a.read.clat_ns has 3 latencies in its bins, but says 10"));
  std::string failed = good;
  failed.replace(failed.find("\"error\": 0"), 10, "\"error\": 5");
  EXPECT_THAT(ImportFioJson(failed).error().ToString(),
              HasSubstr("fio job a: failed with error 5: Input/output error"));
}

TEST(FioWorkload, RefusesCommandsAndPathsOnThisHostToo) {
  runtime::HostEnv env;
  v1::Workload spec;
  spec.mutable_fio()->set_job("[a]\nrw=read\nexec_prerun=touch /tmp/x\n");
  Target target;
  EXPECT_EQ(MakeWorkload(spec, Seed{1}, target, env).error().code(), Errc::kPermissionDenied);
  target.allow_exec = true;
  EXPECT_TRUE(MakeWorkload(spec, Seed{1}, target, env));
  for (const char* engine : {"exec", "external:/tmp/x.so", "./x.so"}) {
    target.allow_exec = false;
    spec.mutable_fio()->set_job(std::string("[a]\nrw=read\nioengine=") + engine + "\n");
    EXPECT_EQ(MakeWorkload(spec, Seed{1}, target, env).error().code(), Errc::kPermissionDenied)
        << engine;
  }
  spec.mutable_fio()->set_job("[a]\nrw=read\nsize=$ncpus'; touch /tmp/x; echo '\n");
  EXPECT_EQ(MakeWorkload(spec, Seed{1}, target, env).error().code(), Errc::kPermissionDenied);
  target.allow_exec = true;
  spec.mutable_fio()->set_job("[a]\nrw=write\nfilename=/dev/sda\n");
  EXPECT_EQ(MakeWorkload(spec, Seed{1}, target, env).error().code(), Errc::kInvalidArgument);
}

}  // namespace
}  // namespace labrack::workload
