// Goal: what a scrape adds up is exactly what the results say, series come and go as promised, and
// the text is what Prometheus wants. Method: results of made-up trials; a clock that is set by
// hand; a real scrape through promtool.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>
#include <prometheus/metric_family.h>

#include "agent/telemetry/collector.h"
#include "agent/telemetry/exporter.h"
#include "proto/convert/convert.h"
#include "storage/base/random.h"

namespace labrack::telemetry {
namespace {

class HandClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Nanoseconds by) { now_ += by; }

 private:
  TimePoint now_{std::chrono::seconds(1000)};
};

v1::AssignmentSpec Spec(const std::string& id, const std::string& stack) {
  v1::AssignmentSpec spec;
  spec.set_assignment_id(id);
  spec.set_run_id("run-7");
  spec.set_playbook_name("quickstart");
  spec.set_cell_name(stack + "/pages");
  spec.mutable_stack()->set_name(stack);
  spec.mutable_stack()->mutable_host()->mutable_ext4();
  spec.mutable_workload()->set_name("pages");
  spec.mutable_workload()->mutable_sync_pages();
  return spec;
}

v1::OperationResult Operation(const std::string& name, std::uint64_t count, Seed seed) {
  Random random(seed);
  Histogram histogram;
  for (std::uint64_t i = 0; i < count; ++i) histogram.Record(random.Below(50'000'000));
  v1::OperationResult operation;
  operation.set_operation(name);
  operation.set_count(count);
  operation.set_bytes(count * 2048);
  *operation.mutable_service() = convert::ToMessage(histogram);
  return operation;
}

v1::StepResult Step(const v1::OperationResult& operation) {
  v1::StepResult step;
  step.set_step("write");
  *step.add_operations() = operation;
  return step;
}

class TelemetryTest : public testing::Test {
 protected:
  const prometheus::MetricFamily* Find(const std::string& name) {
    families_ = collector_.Collect();
    for (const prometheus::MetricFamily& family : families_) {
      if (family.name == name) return &family;
    }
    return nullptr;
  }
  double Sum(const std::string& name) {
    double sum = 0;
    const prometheus::MetricFamily* family = Find(name);
    if (family == nullptr) return -1;
    for (const prometheus::ClientMetric& metric : family->metric) {
      sum += metric.counter.value + metric.gauge.value;
    }
    return sum;
  }
  HandClock clock_;
  Collector collector_{std::chrono::minutes(5),
                       {.agent_id = "st-01", .version = "0.1.0", .git_commit = "abc"},
                       clock_};
  std::vector<prometheus::MetricFamily> families_;
};

TEST_F(TelemetryTest, LiveCountsEndAtExactlyTheResult) {
  const v1::AssignmentSpec spec = Spec("a/0/st-01", "ext4");
  collector_.TrialBegan(spec);
  collector_.StepRuns(spec, {Operation("write", 40, Seed{1})});
  EXPECT_EQ(Sum("labrack_io_ops_total"), 40);
  collector_.StepRuns(spec, {Operation("write", 90, Seed{1})});
  EXPECT_EQ(Sum("labrack_io_ops_total"), 90);
  collector_.StepDone(spec, Step(Operation("write", 123, Seed{1})));
  EXPECT_EQ(Sum("labrack_io_ops_total"), 123);
  EXPECT_EQ(Sum("labrack_io_bytes_total"), 123 * 2048);
  collector_.TrialEnded(spec, v1::OUTCOME_OK);

  const v1::AssignmentSpec second = Spec("a/1/st-01", "ext4");
  collector_.TrialBegan(second);
  collector_.StepDone(second, Step(Operation("write", 1000, Seed{2})));
  EXPECT_EQ(Sum("labrack_io_ops_total"), 1123);
  EXPECT_EQ(Find("labrack_io_ops_total")->metric.size(), 1U);
}

TEST_F(TelemetryTest, ACrashedStepNeverMakesACounterGoBack) {
  const v1::AssignmentSpec spec = Spec("a/0/st-01", "ext4");
  collector_.TrialBegan(spec);
  collector_.StepRuns(spec, {Operation("write", 40, Seed{1})});
  collector_.TrialEnded(spec, v1::OUTCOME_CRASHED);
  EXPECT_EQ(Sum("labrack_io_ops_total"), 40);
}

TEST_F(TelemetryTest, BucketsAreTheFixedOnesAndMatchTheHistogram) {
  const std::vector<std::uint64_t> bounds = BucketBoundsNs();
  ASSERT_EQ(bounds.size(), 25U);
  EXPECT_EQ(bounds.front(), 1'000U);
  EXPECT_EQ(bounds.back(), 100'000'000'000U);
  const v1::OperationResult operation = Operation("write", 500, Seed{3});
  collector_.StepDone(Spec("a/0/st-01", "ext4"), Step(operation));
  const Histogram histogram = *convert::FromMessage(operation.service());
  const prometheus::ClientMetric::Histogram got =
      Find("labrack_io_service_seconds")->metric.at(0).histogram;
  ASSERT_EQ(got.bucket.size(), 26U);
  EXPECT_EQ(got.sample_count, 500U);
  EXPECT_EQ(got.bucket.back().cumulative_count, 500U);
  EXPECT_DOUBLE_EQ(got.sample_sum, static_cast<double>(histogram.sum_ns()) * 1e-9);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    EXPECT_EQ(got.bucket[i].cumulative_count, histogram.CountAtMost(bounds[i]));
  }
}

TEST_F(TelemetryTest, RunIdStandsInOneSeriesOnlyAndGoesAfterTheGrace) {
  for (int i = 0; i < 3; ++i) {
    const v1::AssignmentSpec spec = Spec("a/" + std::to_string(i) + "/st-01", "ext4");
    collector_.TrialBegan(spec);
    collector_.PhaseBegan(spec, v1::PHASE_WARM_UP, std::chrono::seconds(5));
    collector_.StepDone(spec, Step(Operation("write", 10, Seed{1})));
    if (i == 2) break;
    collector_.TrialEnded(spec, v1::OUTCOME_OK);
    clock_.Advance(std::chrono::seconds(1));
  }
  const prometheus::MetricFamily* phase = Find("labrack_phase_info");
  ASSERT_NE(phase, nullptr);
  ASSERT_EQ(phase->metric.size(), 1U);
  EXPECT_EQ(phase->metric[0].label[2].value, "warm_up");
  for (const prometheus::MetricFamily& family : collector_.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      for (const prometheus::ClientMetric::Label& label : metric.label) {
        EXPECT_TRUE(label.name != "run_id" || family.name == "labrack_phase_info") << family.name;
      }
    }
  }
  collector_.TrialEnded(Spec("a/2/st-01", "ext4"), v1::OUTCOME_OK);
  clock_.Advance(std::chrono::minutes(4));
  EXPECT_NE(Find("labrack_phase_info"), nullptr);
  EXPECT_EQ(Sum("labrack_io_ops_total"), 30);
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(Find("labrack_phase_info"), nullptr);
  EXPECT_EQ(Find("labrack_io_ops_total"), nullptr);
}

TEST_F(TelemetryTest, TheNumberOfSeriesIsBounded) {
  for (std::size_t i = 0; i < kSeriesMax + 10; ++i) {
    collector_.StepDone(Spec("a/0/st-01", "s" + std::to_string(i)),
                        Step(Operation("w", 1, Seed{1})));
  }
  EXPECT_EQ(Find("labrack_io_ops_total")->metric.size(), kSeriesMax);
  EXPECT_EQ(Sum("labrack_metrics_dropped_series_total"), 10);
}

TEST_F(TelemetryTest, PromtoolFindsNoFault) {
  if (std::system("command -v promtool > /dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed";
  Result<std::unique_ptr<Exporter>> exporter =
      Exporter::Open("127.0.0.1:0", std::chrono::minutes(5),
                     {.agent_id = "st-01", .version = "0.1.0", .git_commit = ""}, clock_);
  ASSERT_TRUE(exporter) << exporter.error().ToString();
  const v1::AssignmentSpec spec = Spec("a/0/st-01", "ext4 \"quoted\"\n");
  (*exporter)->TrialBegan(spec);
  (*exporter)->PhaseBegan(spec, v1::PHASE_MEASURE, std::chrono::seconds(5));
  v1::OperationResult operation = Operation("write", 100, Seed{4});
  *operation.mutable_response() = operation.service();
  v1::StepResult step = Step(operation);
  step.set_intended_start_mono_ns(1'000'000);
  // The window begins with the warm-up's end, which is no skew.
  v1::AssignmentSpec warmed_up = spec;
  warmed_up.mutable_workload()->mutable_random()->set_warmup(10'000'000'000);
  step.set_measure_begin_mono_ns(10'001'200'000);
  (*exporter)->StepDone(warmed_up, step);
  (*exporter)->TrialEnded(Spec("a/1/st-01", "ext4"), v1::OUTCOME_FAILED);
  (*exporter)->SetFigures({.connected = true,
                           .spool_bytes = 10,
                           .held_assignments = 1,
                           .clock_uncertainty = std::chrono::microseconds(80),
                           .round_trip = std::chrono::microseconds(160)});
  httplib::Client client("http://" + (*exporter)->address());
  client.Get("/metrics");
  const httplib::Result reply = client.Get("/metrics");  // the exposer's own figures are there too
  ASSERT_TRUE(reply);
  const std::string& text = reply->body;
  ASSERT_NE(text.find("labrack_start_skew_seconds 0.0002"), std::string::npos) << text;
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("metrics-" + std::to_string(getpid()));
  std::ofstream(file) << text;
  const int code = std::system(("promtool check metrics < " + file.string()).c_str());
  std::filesystem::remove(file);
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace labrack::telemetry
