// Goal: what an operation cost is summed up rightly over trials and hosts, and the sentences say
// what differs, no more. Method: hand-made results of a stripe and a RAID-5 with prewrites, and of
// host stacks.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/compare/reasons.h"
#include "controller/report/why.h"
#include "proto/convert/convert.h"

namespace labrack::compare {
namespace {

using testing::Contains;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kPage = 2048;

v1::HistogramData Times(std::uint64_t count, Nanoseconds each) {
  Histogram histogram;
  for (std::uint64_t i = 0; i < count; ++i) histogram.Record(each);
  return convert::ToMessage(histogram);
}

v1::StepResult WriteStep(std::uint64_t count, Nanoseconds each) {
  v1::StepResult step;
  step.set_step("write");
  step.add_counted("write");
  v1::OperationResult& operation = *step.add_operations();
  operation.set_operation("write");
  operation.set_count(count);
  operation.set_bytes(count * kPage);
  *operation.mutable_service() = Times(count, each);
  return step;
}

struct Io {
  const char* purpose;
  std::uint32_t depth;
  std::uint64_t reads;
  std::uint64_t writes;
  bool behind;
};

// I/Os of each of `count` operations.
void AddIos(const std::vector<Io>& ios, std::uint64_t chain, std::uint64_t count,
            v1::StepResult& step) {
  v1::DeviceUse& device = *step.add_devices();
  for (const Io& io : ios) {
    v1::IoSum& sum = *step.mutable_io()->add_sums();
    sum.set_purpose(io.purpose);
    sum.set_depth(io.depth);
    sum.set_reads(io.reads * count);
    sum.set_writes(io.writes * count);
    sum.set_behind(io.behind ? (io.reads + io.writes) * count : 0);
    device.set_read_operations(device.read_operations() + io.reads * count);
    device.set_write_operations(device.write_operations() + io.writes * count);
    device.set_read_bytes(device.read_operations() * kPage);
    device.set_write_bytes(device.write_operations() * kPage);
  }
  v1::IoChain& chains = *step.mutable_io()->add_chains();
  chains.set_operation("write");
  chains.set_count(count);
  for (std::uint64_t depth = 0; depth <= 9; ++depth)
    chains.add_by_depth(depth == chain ? count : 0);
  const std::chrono::milliseconds at_disk(7);
  *step.mutable_io()->mutable_write_times() = Times(count, at_disk);
  *step.mutable_io()->mutable_read_times() = Times(count, at_disk);
}

v1::StepResult StripeStep(std::uint64_t count) {
  v1::StepResult step = WriteStep(count, std::chrono::milliseconds(7));
  AddIos({{"user data", 1, 0, 1, false}}, 1, count, step);
  return step;
}

v1::StepResult Raid5Step(std::uint64_t count) {
  v1::StepResult step = WriteStep(count, std::chrono::milliseconds(21));
  AddIos({{"old data", 1, 1, 0, false},
          {"old parity", 1, 1, 0, false},
          {"prewrite", 2, 0, 2, false},
          {"user data", 3, 0, 1, true},
          {"parity", 3, 0, 1, true}},
         2, count, step);
  return step;
}

// A run of one workload on two stacks; the first is the base.
class ReasonsTest : public testing::Test {
 protected:
  ReasonsTest() {
    for (const char* name : {"stripe", "raid5"}) {
      v1::PlannedCell& cell = *record_.mutable_plan()->add_cells();
      cell.set_index(static_cast<std::uint32_t>(record_.plan().cells_size() - 1));
      cell.mutable_stack()->set_name(name);
      cell.mutable_workload()->set_name("pages");
      cell.add_agent_ids("a");
      *record_.mutable_plan()->mutable_playbook()->add_stacks() = cell.stack();
    }
    record_.mutable_summary()->set_run_id("r-1");
  }

  // A valid trial with a result of each host.
  void Add(int cell, const std::vector<v1::StepResult>& hosts) {
    v1::TrialRecord trial;
    for (const v1::StepResult& step : hosts) {
      *trial.add_assignments()->mutable_result()->add_steps() = step;
    }
    reasons_.Add(record_.plan().cells(cell), trial);
  }

  v1::Report Make() {
    RunView view(record_);
    for (CellView& cell : view.cells) cell.steps = {"write"};
    v1::Report report;
    *report.mutable_run() = record_.summary();
    reasons_.AddTo(view, report);
    return report;
  }

  v1::RunRecord record_;
  Reasons reasons_;
};

TEST_F(ReasonsTest, SumsOfTrialsAndHostsAreDividedOnce) {
  Add(0, {StripeStep(10), StripeStep(30)});
  Add(0, {StripeStep(60)});
  Add(1, {Raid5Step(10)});
  const v1::Report report = Make();
  ASSERT_EQ(report.reasons_size(), 1);
  EXPECT_EQ(report.reasons(0).workload(), "pages");
  const v1::StackReasons& stripe = report.reasons(0).stacks(0);
  EXPECT_EQ(stripe.stack(), "stripe");
  EXPECT_EQ(stripe.trials(), 2u);
  EXPECT_EQ(stripe.operations(), 100u);
  EXPECT_EQ(stripe.ios(), 1);
  EXPECT_EQ(stripe.ios_behind(), 0);
  EXPECT_EQ(stripe.chain(), 1);
  EXPECT_EQ(stripe.write_amplification(), 1);
  EXPECT_FALSE(stripe.has_read_amplification());
  EXPECT_FALSE(stripe.has_cpu_ns());
  EXPECT_THAT(stripe.latency_ns(), DoubleNear(7e6, 1e5));

  const v1::StackReasons& raid5 = report.reasons(0).stacks(1);
  EXPECT_EQ(raid5.ios(), 6);
  EXPECT_EQ(raid5.ios_before(), 4);
  EXPECT_EQ(raid5.ios_behind(), 2);
  EXPECT_EQ(raid5.chain(), 2);
  EXPECT_EQ(raid5.stages_size(), 5);
  EXPECT_EQ(raid5.write_amplification(), 4);
}

TEST_F(ReasonsTest, TheChainComesBeforeTheCost) {
  Add(0, {StripeStep(100)});
  Add(1, {Raid5Step(100)});
  const v1::Report report = Make();
  const auto& sentences = report.reasons(0).sentences();
  ASSERT_GE(sentences.size(), 4);
  EXPECT_EQ(sentences[0],
            "An operation takes raid5 3.00 times as long as stripe (21.0 ms against 7.00 ms).");
  EXPECT_EQ(sentences[1],
            "raid5 waits for 2.0 I/Os one after the other before it acknowledges (old data and old "
            "parity, then prewrite), stripe for 1.0 (user data).");
  EXPECT_THAT(sentences,
              Contains("raid5 costs 6.0 I/Os at the disks per operation, stripe costs 1.0; 2.0 of "
                       "them come after the acknowledgement (parity and user data)."));
  EXPECT_THAT(sentences, Not(Contains(HasSubstr("flushes"))));
}

TEST_F(ReasonsTest, WhatIsAlikeIsNotMadeADifference) {
  Add(0, {StripeStep(100)});
  Add(1, {StripeStep(100)});
  const v1::Report report = Make();
  EXPECT_THAT(report.reasons(0).sentences(),
              ElementsAre("An operation takes raid5 as long as stripe (7.00 ms against 7.00 ms)."));
}

TEST_F(ReasonsTest, WithoutCountersItSaysThatNothingIsKnown) {
  Add(0, {WriteStep(100, std::chrono::milliseconds(1))});
  Add(1, {WriteStep(100, std::chrono::milliseconds(2))});
  const v1::Report report = Make();
  EXPECT_THAT(report.reasons(0).sentences(),
              ElementsAre("An operation takes raid5 2.00 times as long as stripe (2.00 ms against "
                          "1.00 ms). Nothing is known of the I/Os below."));
}

TEST_F(ReasonsTest, TheTableHasARowForWhatAnyStackHas) {
  Add(0, {StripeStep(100)});
  Add(1, {Raid5Step(100)});
  const std::string text = report::FormatReasons(Make(), {});
  EXPECT_THAT(text, HasSubstr("stage 2: prewrite"));
  EXPECT_THAT(text, HasSubstr("2.00 w"));
  EXPECT_THAT(text, HasSubstr("1.00 w behind"));
  EXPECT_THAT(text, Not(HasSubstr("processor time")));
  EXPECT_THAT(text, Not(HasSubstr("rotation")));
}

TEST_F(ReasonsTest, ManyStacksAreContinuedBelowWithTheBase) {
  Add(0, {StripeStep(100)});
  v1::Report report = Make();
  v1::StepReasons& reasons = *report.mutable_reasons(0);
  for (int i = 0; i < 9; ++i) {
    *reasons.add_stacks() = reasons.stacks(0);
    reasons.mutable_stacks(i + 1)->set_stack("stack-" + std::to_string(i));
  }
  const std::string text = report::FormatReasons(report, {});
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    EXPECT_LE(text.find('\n', at) - at, 100u);
  }
  std::size_t bases = 0;
  for (std::size_t at = 0; (at = text.find(" stripe ", at)) != std::string::npos; ++at) ++bases;
  EXPECT_EQ(bases, 3u) << text;
}

TEST_F(ReasonsTest, ARunWithoutValidTrialsHasNothingToExplain) {
  v1::Report report;
  EXPECT_THAT(report::FormatReasons(report, {}), HasSubstr("no trial is valid"));
}

}  // namespace
}  // namespace labrack::compare
