// Goal: plans are what planner.h promises, whatever playbook and fleet: every cell has its trials,
// drift hits all stacks alike, one seed gives one plan byte for byte, bytes add up, and what a host
// cannot do is refused, skipped or stood in for as the playbook says.
// Method: seeded random playbooks and fleets made as messages; small hand-made ones for each
// refusal.
#include "controller/plan/planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/names.h"
#include "storage/base/random.h"

namespace labrack::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FleetHost MakeHost(const std::string& id) {
  FleetHost host{id, true, {}};
  v1::Inventory& inventory = host.inventory;
  inventory.set_host_name(id + ".lab");
  inventory.set_machine_id("machine of " + id);
  inventory.set_loop_devices(true);
  inventory.set_allow_exec(true);
  inventory.add_directories("/srv/lab");
  for (const char* kind : {"dir", "ext4", "xfs", "btrfs", "zfs", "volume"}) {
    v1::StackSupport& support = *inventory.add_stack_support();
    support.set_kind(kind);
    support.set_supported(true);
  }
  v1::ModelledDisk& model = *inventory.add_modelled_disks();
  model.set_name("e450-7200");
  model.set_size_bytes(18ULL << 30);
  v1::LentDisk& disk = *inventory.add_disks();
  disk.set_id("file:/var/lib/labrack-agent/disks");
  disk.set_kind("file");
  disk.set_backing("ext4 on /dev/vda1 (QEMU DISK, serial X)");
  disk.set_capacity_bytes(100ULL << 30);
  disk.set_free_bytes(100ULL << 30);
  return host;
}

void Refuse(FleetHost& host, const std::string& kind, const std::string& reason) {
  for (v1::StackSupport& support : *host.inventory.mutable_stack_support()) {
    if (support.kind() != kind) continue;
    support.set_supported(false);
    support.set_reason(reason);
  }
}

v1::Stack MakeStack(const std::string& name, const std::string& kind,
                    v1::IfUnsupported if_unsupported = v1::IF_UNSUPPORTED_REFUSE) {
  v1::Stack stack;
  stack.set_name(name);
  stack.set_if_unsupported(if_unsupported);
  if (kind == "ext4") stack.mutable_host()->mutable_ext4();
  if (kind == "xfs") stack.mutable_host()->mutable_xfs();
  if (kind == "dir") stack.mutable_host()->mutable_dir();
  if (kind == "btrfs") {
    stack.mutable_host()->mutable_btrfs()->set_data(v1::BTRFS_PROFILE_RAID1);
    stack.mutable_host()->mutable_btrfs()->set_metadata(v1::BTRFS_PROFILE_RAID1);
  }
  return stack;
}

v1::Workload MakeWrite(const std::string& name, std::uint64_t bytes) {
  v1::Workload workload;
  workload.set_name(name);
  workload.mutable_stream()->set_direction(v1::DIRECTION_WRITE);
  workload.mutable_stream()->set_file(bytes);
  workload.mutable_stream()->set_block(128 << 10);
  workload.mutable_stream()->set_clients(1);
  return workload;
}

class Builder {
 public:
  explicit Builder(std::uint32_t trials) {
    loaded.file = "test.yaml";
    loaded.sha256 = "0123";
    loaded.playbook.set_playbook("test");
    loaded.playbook.set_trials(trials);
    disks.set_count(2);
    disks.set_size(1ULL << 30);
    disks.set_kind(v1::DISK_KIND_FILE);
  }
  void AddStack(v1::Stack stack) { *loaded.playbook.add_stacks() = std::move(stack); }
  void AddWorkload(v1::Workload workload, const std::vector<std::string>& values = {}) {
    *loaded.playbook.add_workloads() = workload;
    for (std::size_t v = 0; v < std::max<std::size_t>(1, values.size()); ++v) {
      for (const v1::Stack& stack : loaded.playbook.stacks()) {
        ExpandedCell cell{stack, workload, disks, {}, ""};
        if (!values.empty()) {
          cell.parameters = {{"size", values[v]}};
          cell.conditions = "size=" + values[v];
        }
        loaded.cells.push_back(std::move(cell));
      }
    }
  }

  LoadedPlaybook loaded;
  v1::Disks disks;
};

// A random playbook that fits every host of MakeHost.
LoadedPlaybook RandomPlaybook(Random& random) {
  Builder builder(static_cast<std::uint32_t>(1 + random.Below(12)));
  const char* kinds[] = {"ext4", "xfs", "btrfs", "dir"};
  for (std::uint64_t i = 0, count = 1 + random.Below(5); i < count; ++i) {
    builder.AddStack(MakeStack("s" + std::to_string(i), kinds[random.Below(4)]));
  }
  for (std::uint64_t i = 0, count = 1 + random.Below(4); i < count; ++i) {
    std::vector<std::string> values;
    for (std::uint64_t v = 0, value_count = random.Below(4); v < value_count; ++v) {
      values.push_back(std::to_string(v + 1) + "MiB");
    }
    builder.AddWorkload(MakeWrite("w" + std::to_string(i), (1 + random.Below(64)) << 20), values);
  }
  return std::move(builder.loaded);
}

FleetView RandomFleet(Random& random) {
  FleetView fleet;
  for (std::uint64_t i = 0, count = 1 + random.Below(8); i < count; ++i) {
    fleet.push_back(MakeHost("h" + std::to_string(random.Below(1000)) + "-" + std::to_string(i)));
  }
  return fleet;
}

std::vector<std::string> Messages(const PlanRefusal& refusal) {
  std::vector<std::string> messages;
  for (const config::Problem& problem : refusal.problems.list()) {
    messages.push_back(problem.code + " " + problem.message);
  }
  return messages;
}

class PlannerProperties : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    Random random(Seed{GetParam()});
    playbook_ = RandomPlaybook(random);
    fleet_ = RandomFleet(random);
    auto plan = MakePlan(playbook_, fleet_, Seed{GetParam()});
    ASSERT_TRUE(plan) << ::testing::PrintToString(Messages(plan.error()));
    plan_ = *plan;
  }
  LoadedPlaybook playbook_;
  FleetView fleet_;
  v1::Plan plan_;
};

TEST_P(PlannerProperties, EveryCellHasEveryRepeatOnce) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (int i = 0; i < plan_.trials_size(); ++i) {
    EXPECT_EQ(plan_.trials(i).index(), static_cast<std::uint32_t>(i));
    EXPECT_TRUE(seen.emplace(plan_.trials(i).cell(), plan_.trials(i).repeat()).second);
  }
  EXPECT_EQ(plan_.cells_size(), static_cast<int>(playbook_.cells.size()));
  EXPECT_EQ(seen.size(), playbook_.cells.size() * playbook_.playbook.trials());
}

TEST_P(PlannerProperties, DriftHitsAllStacksAlike) {
  const double trials = playbook_.playbook.trials();
  std::map<std::uint32_t, double> mean;
  for (const v1::PlannedTrial& trial : plan_.trials()) mean[trial.cell()] += trial.index() / trials;
  // Within one workload and its parameters. An odd number of trials leaves one repeat unpaired: the
  // means may then differ by that repeat's distance, at most (stacks - 1) / trials.
  const double stacks = playbook_.playbook.stacks_size();
  const bool paired = playbook_.playbook.trials() % 2 == 0;
  const double allowed = paired ? 1e-9 : (stacks - 1) / trials + 1e-9;
  std::map<std::string, std::vector<double>> groups;
  for (const v1::PlannedCell& cell : plan_.cells()) {
    groups[cell.workload().name() + cell.parameters_text()].push_back(mean[cell.index()]);
  }
  for (const auto& [name, means] : groups) {
    const auto [low, high] = std::ranges::minmax(means);
    EXPECT_LE(high - low, allowed) << name;
  }
}

TEST_P(PlannerProperties, OneSeedGivesOnePlanByteForByte) {
  std::ranges::reverse(fleet_);  // the order in which hosts are known does not matter
  const auto again = MakePlan(playbook_, fleet_, Seed{GetParam()});
  ASSERT_TRUE(again);
  // Maps have no order in protobuf's wire form unless asked for.
  EXPECT_EQ(again->DebugString(), plan_.DebugString());
}

TEST_P(PlannerProperties, StacksOfARepeatShareTheSeedAndNothingElseDoes) {
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::set<std::uint64_t>> seeds;
  std::set<std::uint64_t> distinct;
  for (const v1::PlannedTrial& trial : plan_.trials()) {
    const v1::PlannedCell& cell = plan_.cells(static_cast<int>(trial.cell()));
    seeds[{cell.workload().name(), cell.parameters_text(), trial.repeat()}].insert(trial.seed());
    distinct.insert(trial.seed());
  }
  for (const auto& [key, values] : seeds) EXPECT_EQ(values.size(), 1U);
  EXPECT_EQ(distinct.size(), seeds.size());
}

TEST_P(PlannerProperties, HostsAreSortedAndBytesAddUp) {
  std::uint64_t sum = 0;
  std::vector<std::string> ids;
  for (const v1::PlannedHost& host : plan_.hosts()) {
    sum += host.write_bytes();
    ids.push_back(host.agent_id());
    EXPECT_GT(host.disks_size(), 0);
  }
  EXPECT_EQ(sum, plan_.write_bytes());
  EXPECT_GT(sum, 0U);
  EXPECT_GT(plan_.duration_ns(), 0);
  EXPECT_EQ(ids.size(), fleet_.size());
  EXPECT_TRUE(std::ranges::is_sorted(ids));
  for (const v1::PlannedCell& cell : plan_.cells()) {
    EXPECT_TRUE(std::ranges::equal(cell.agent_ids(), ids));
  }
}

TEST_P(PlannerProperties, EveryTrialGivesAnAssignmentToEachHost) {
  std::set<std::string> ids;
  for (const v1::PlannedTrial& trial : plan_.trials()) {
    const auto specs = MakeAssignments(plan_, trial, "r-1");
    EXPECT_EQ(specs.size(), fleet_.size());
    for (const v1::AssignmentSpec& spec : specs) {
      EXPECT_TRUE(ids.insert(spec.assignment_id()).second);
      EXPECT_EQ(spec.barrier(), fleet_.size() > 1);
      EXPECT_EQ(spec.seed(), trial.seed());
      EXPECT_EQ(spec.epoch(), 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlannerProperties, ::testing::Range<std::uint64_t>(1, 101));

// Two stacks, two workloads.
Builder SmallPlaybook(std::uint32_t trials = 4) {
  Builder builder(trials);
  builder.AddStack(MakeStack("ext4", "ext4"));
  builder.AddStack(MakeStack("xfs", "xfs"));
  builder.AddWorkload(MakeWrite("one", 1 << 20));
  builder.AddWorkload(MakeWrite("two", 1 << 20));
  return builder;
}

TEST(Planner, InterleavesStacksBackAndForth) {
  Builder builder(4);
  builder.AddStack(MakeStack("a", "ext4"));
  builder.AddStack(MakeStack("b", "xfs"));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  const auto plan = MakePlan(builder.loaded, {MakeHost("h1")}, Seed{7});
  ASSERT_TRUE(plan);
  std::string order;
  for (const v1::PlannedTrial& trial : plan->trials()) {
    order += plan->cells(static_cast<int>(trial.cell())).stack().name();
  }
  EXPECT_EQ(order, "abbabaab");
}

TEST(Planner, AgentsOfOneMachineAreToldApart) {
  FleetView fleet{MakeHost("a"), MakeHost("b"), MakeHost("c")};
  fleet[1].inventory.set_host_name("a.lab");
  const auto plan = MakePlan(SmallPlaybook().loaded, fleet, Seed{7});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->hosts(0).host_name(), "a");
  EXPECT_EQ(plan->hosts(1).host_name(), "b");
  EXPECT_EQ(plan->hosts(2).host_name(), "c.lab");
}

TEST(Planner, NamesEveryDisk) {
  const auto plan = MakePlan(SmallPlaybook().loaded, {MakeHost("h1")}, Seed{7});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->hosts(0).disks(),
              ElementsAre("file:/var/lib/labrack-agent/disks/<trial>/disk-0, 1.00 GiB, on ext4 on "
                          "/dev/vda1 (QEMU DISK, serial X)",
                          "file:/var/lib/labrack-agent/disks/<trial>/disk-1, 1.00 GiB, on ext4 on "
                          "/dev/vda1 (QEMU DISK, serial X)"));
}

TEST(Planner, CountsMirroredWritesTwice) {
  Builder plain(1);
  plain.AddStack(MakeStack("s", "ext4"));
  plain.AddWorkload(MakeWrite("w", 10 << 20));
  Builder mirrored(1);
  mirrored.AddStack(MakeStack("s", "btrfs"));
  mirrored.AddWorkload(MakeWrite("w", 10 << 20));
  for (Builder* builder : {&plain, &mirrored}) {
    builder->loaded.cells[0].disks.set_prepare(v1::DISK_PREPARATION_ALLOCATED);
  }
  EXPECT_EQ(MakePlan(plain.loaded, {MakeHost("h1")}, Seed{1})->write_bytes(), 10U << 20);
  EXPECT_EQ(MakePlan(mirrored.loaded, {MakeHost("h1")}, Seed{1})->write_bytes(), 20U << 20);
  plain.loaded.cells[0].disks.set_prepare(v1::DISK_PREPARATION_WRITTEN);
  EXPECT_EQ(MakePlan(plain.loaded, {MakeHost("h1")}, Seed{1})->write_bytes(),
            (2ULL << 30) + (10U << 20));
}

TEST(Planner, TooFewHostsSaysWhichMatchAndWhyNot) {
  Builder builder = SmallPlaybook();
  (*builder.loaded.playbook.mutable_hosts()->mutable_match())["role"] = "bench";
  builder.loaded.playbook.mutable_hosts()->set_min(3);
  builder.loaded.places["hosts.min"] = {"test.yaml", {{5, 10}, {5, 11}}};
  FleetView fleet{MakeHost("b"), MakeHost("a"), MakeHost("c"), MakeHost("d")};
  (*fleet[0].inventory.mutable_labels())["role"] = "bench";
  (*fleet[1].inventory.mutable_labels())["role"] = "db";
  (*fleet[2].inventory.mutable_labels())["role"] = "bench";
  fleet[2].online = false;
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  ASSERT_EQ(plan.error().problems.total(), 1U);
  const config::Problem& problem = plan.error().problems.list()[0];
  EXPECT_EQ(problem.code, "LR401");
  EXPECT_EQ(problem.message, "1 attached host matches `role: bench`, the playbook asks for 3");
  EXPECT_THAT(problem.notes, ElementsAre("a does not match: it has the label `role: db`",
                                         "c matches but is not online",
                                         "d does not match: it has no label `role`"));
  EXPECT_EQ(problem.span.begin.line, 5U);
}

TEST(Planner, TakesTheFirstHostsByName) {
  Builder builder = SmallPlaybook();
  builder.loaded.playbook.mutable_hosts()->set_max(2);
  const auto plan =
      MakePlan(builder.loaded, {MakeHost("c"), MakeHost("a"), MakeHost("b")}, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->cells(0).agent_ids(), ElementsAre("a", "b"));
}

TEST(Planner, RefusesAHostThatIsNotCleanIfItWouldTakePart) {
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  fleet[1].dirty = "/mnt/a: cannot be unmounted: in use by sh (pid 7)";
  Builder builder = SmallPlaybook();
  auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(Messages(plan.error()),
              ElementsAre("LR411 1 host still holds what an earlier trial has left, and takes no "
                          "other"));
  const config::Problem& problem = plan.error().problems.list()[0];
  EXPECT_THAT(problem.notes, ElementsAre("b: /mnt/a: cannot be unmounted: in use by sh (pid 7)"));
  EXPECT_THAT(problem.helps[1], HasSubstr("hosts.match"));
  (*builder.loaded.playbook.mutable_hosts()->mutable_match())["role"] = "bench";
  (*fleet[0].inventory.mutable_labels())["role"] = "bench";
  EXPECT_TRUE(MakePlan(builder.loaded, fleet, Seed{1}));
}

TEST(Planner, RefusesWhatAHostCannotBuild) {
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  Refuse(fleet[1], "xfs", "mkfs.xfs is not installed (package xfsprogs)");
  const auto plan = MakePlan(SmallPlaybook().loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(Messages(plan.error()), ElementsAre("LR402 stack `xfs` cannot be built on 1 host"));
  EXPECT_THAT(plan.error().problems.list()[0].notes,
              ElementsAre("b: mkfs.xfs is not installed (package xfsprogs)"));
  EXPECT_FALSE(plan.error().safety);
}

v1::Stack MakeStripe(const std::string& name) {
  v1::Stack stack;
  stack.set_name(name);
  stack.mutable_volume()->mutable_stripe()->set_interlace(8192);
  return stack;
}

TEST(Planner, AVolumeNeedsNeitherRootNorLoopDevices) {
  Builder builder(2);
  builder.AddStack(MakeStripe("stripe"));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  FleetView fleet{MakeHost("a")};
  fleet[0].inventory.set_loop_devices(false);
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->hosts(0).disks(), Each(HasSubstr("/<trial>/disk-")));

  Refuse(fleet[0], "volume", "for a reason");
  EXPECT_THAT(Messages(MakePlan(builder.loaded, fleet, Seed{1}).error()),
              ElementsAre("LR402 stack `stripe` cannot be built on 1 host"));
}

TEST(Planner, AMirrorTakesADiskASubmirror) {
  Builder builder(2);
  v1::Stack stack;
  stack.set_name("mirror");
  stack.mutable_volume()->mutable_mirror()->set_submirrors(2);
  builder.AddStack(stack);
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  for (ExpandedCell& cell : builder.loaded.cells) cell.disks.set_count(4);
  const auto plan = MakePlan(builder.loaded, {MakeHost("a")}, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->hosts(0).disks_size(), 2);
}

TEST(Planner, ModelledDisksAreLentByNobodyAndMustBeKnown) {
  Builder builder(2);
  builder.AddStack(MakeStripe("stripe"));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  for (ExpandedCell& cell : builder.loaded.cells) cell.disks.set_model("e450-7200");
  FleetView fleet{MakeHost("a")};
  fleet[0].inventory.clear_disks();
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->hosts(0).write_bytes(), 0U);
  EXPECT_THAT(plan->hosts(0).disks(), ElementsAre(HasSubstr("`e450-7200`")));
  EXPECT_THAT(plan->hosts(0).disks(0), HasSubstr("in virtual time"));

  for (ExpandedCell& cell : builder.loaded.cells) cell.disks.set_model("e45-7200");
  const auto unknown = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().problems.list()[0].notes,
              ElementsAre("a: its agent has no model `e45-7200`; did you mean `e450-7200`?"));

  // No directory of real disks stands in for a model: its times would be others.
  for (ExpandedCell& cell : builder.loaded.cells) {
    cell.stack.set_if_unsupported(v1::IF_UNSUPPORTED_DIRECTORY);
  }
  EXPECT_FALSE(MakePlan(builder.loaded, fleet, Seed{1}));

  for (ExpandedCell& cell : builder.loaded.cells) {
    cell.disks.set_model("e450-7200");
    cell.disks.set_size(19ULL << 30);
  }
  const auto large = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().problems.list()[0].notes,
              ElementsAre("a: `e450-7200` has 18GiB, and `disks: {size}` is 19GiB"));
}

TEST(Planner, SkipsOrStandsInWhereThePlaybookSaysSo) {
  Builder builder(4);
  builder.AddStack(MakeStack("xfs", "xfs", v1::IF_UNSUPPORTED_SKIP));
  builder.AddStack(MakeStack("ext4", "ext4", v1::IF_UNSUPPORTED_DIRECTORY));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  fleet[1].inventory.set_loop_devices(false);
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->cells(0).agent_ids(), ElementsAre("a"));
  EXPECT_THAT(plan->cells(1).agent_ids(), ElementsAre("a", "b"));
  EXPECT_EQ(plan->cells(1).stand_ins().count("b"), 1U);
  EXPECT_EQ(plan->notes_size(), 2);
  for (const v1::PlannedTrial& trial : plan->trials()) {
    const auto specs = MakeAssignments(*plan, trial, "r");
    if (trial.cell() == 0) {
      ASSERT_EQ(specs.size(), 1U);
      EXPECT_FALSE(specs[0].barrier());
    } else {
      EXPECT_EQ(specs[0].stand_in(), "");
      EXPECT_THAT(specs[1].stand_in(), HasSubstr("loop devices"));
    }
  }
}

TEST(Planner, RefusesARunOfNothing) {
  Builder builder(4);
  builder.AddStack(MakeStack("xfs", "xfs", v1::IF_UNSUPPORTED_SKIP));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  FleetView fleet{MakeHost("a")};
  Refuse(fleet[0], "xfs", "no");
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().problems.list()[0].code, "LR407");
}

TEST(Planner, RefusesABaseThatRunsNowhere) {
  Builder builder(4);
  builder.AddStack(MakeStack("xfs", "xfs", v1::IF_UNSUPPORTED_SKIP));
  builder.AddStack(MakeStack("ext4", "ext4"));
  builder.AddWorkload(MakeWrite("w", 1 << 20));
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  Refuse(fleet[0], "xfs", "no xfs");
  builder.loaded.playbook.set_base("xfs");
  EXPECT_TRUE(MakePlan(builder.loaded, fleet, Seed{1}));  // b has it
  Refuse(fleet[1], "xfs", "none here");
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(
      Messages(plan.error()),
      ElementsAre("LR410 the base `xfs` would be run nowhere, so nothing could be compared"));
  EXPECT_EQ(plan.error().problems.list()[0].notes.size(), 2u);
  builder.loaded.playbook.clear_base();
  EXPECT_TRUE(MakePlan(builder.loaded, fleet, Seed{1}));
}

TEST(Planner, SkipsAreData) {
  Builder builder(4);
  builder.AddStack(MakeStack("xfs", "xfs", v1::IF_UNSUPPORTED_SKIP));
  builder.AddStack(MakeStack("ext4", "ext4"));
  builder.AddWorkload(MakeWrite("w", 1 << 20), {"1MiB", "2MiB"});
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  Refuse(fleet[1], "xfs", "no xfs");
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->skips_size(), 1);
  EXPECT_EQ(plan->skips(0).stack(), "xfs");
  EXPECT_EQ(plan->skips(0).agent_id(), "b");
  EXPECT_THAT(plan->skips(0).reason(), HasSubstr("no xfs"));
  EXPECT_EQ(plan->skips(0).cells_size(), 0);  // all of them
}

TEST(Planner, RefusesDisksThatDoNotFit) {
  FleetView fleet{MakeHost("a")};
  fleet[0].inventory.mutable_disks(0)->set_free_bytes(2ULL << 30);  // the disks, but no headroom
  const auto plan = MakePlan(SmallPlaybook().loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(Messages(plan.error()),
              ElementsAre("LR403 1 host cannot make room for the file disks of a trial"));
}

TEST(Planner, AgentsOfOneMachineShareItsSpace) {
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  for (FleetHost& host : fleet) {
    host.inventory.mutable_disks(0)->set_free_bytes(3ULL << 30);
    host.inventory.mutable_disks(0)->set_capacity_bytes(3ULL << 30);
  }
  ASSERT_TRUE(MakePlan(SmallPlaybook().loaded, fleet, Seed{1}));
  for (FleetHost& host : fleet) host.inventory.set_machine_id("the same");
  const auto plan = MakePlan(SmallPlaybook().loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().problems.list()[0].notes[0], HasSubstr("together"));
}

TEST(Planner, RefusedDisksAreARefusalBySafety) {
  FleetView fleet{MakeHost("a")};
  v1::LentDisk& disk = *fleet[0].inventory.mutable_disks(0);
  disk.set_kind("block");
  disk.set_refused("block devices are not supported yet");
  Builder builder = SmallPlaybook();
  for (ExpandedCell& cell : builder.loaded.cells) {
    cell.stack.set_if_unsupported(v1::IF_UNSUPPORTED_DIRECTORY);  // must not get around it
  }
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().safety);
  EXPECT_EQ(plan.error().problems.list()[0].code, "LR406");
}

TEST(Planner, RefusesCommandsWhereTheHostDoes) {
  Builder builder(4);
  builder.AddStack(MakeStack("ext4", "ext4"));
  v1::Workload command;
  command.set_name("tar");
  command.mutable_exec()->add_command("tar");
  v1::Workload job;
  job.set_name("job");
  job.mutable_fio()->set_job("[a]\nexec_prerun=touch /x\nsize=1m\n");
  builder.AddWorkload(command);
  builder.AddWorkload(job);
  FleetView fleet{MakeHost("a"), MakeHost("b")};
  ASSERT_TRUE(MakePlan(builder.loaded, fleet, Seed{1}));
  fleet[1].inventory.set_allow_exec(false);
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(
      Messages(plan.error()),
      ElementsAre("LR404 workload `tar` runs a command, which 1 host refuses",
                  "LR404 `exec_prerun=touch /x` of the fio job runs a command, which 1 host "
                  "refuses"));
}

// Every value of an axis counts; a workload that no cell runs does not.
TEST(Planner, LooksForCommandsInWhatIsRun) {
  Builder builder(4);
  builder.AddStack(MakeStack("ext4", "ext4"));
  v1::Workload job;
  job.set_name("job");
  job.mutable_fio()->set_job("[a]\nsize=1m\n");
  builder.AddWorkload(job);
  FleetView fleet{MakeHost("a")};
  fleet[0].inventory.set_allow_exec(false);
  v1::Workload command;
  command.set_name("tar");
  command.mutable_exec()->add_command("tar");
  *builder.loaded.playbook.add_workloads() = command;
  EXPECT_TRUE(MakePlan(builder.loaded, fleet, Seed{1}));
  builder.loaded.cells.push_back(builder.loaded.cells.back());
  builder.loaded.cells.back().workload.mutable_fio()->set_job("[a]\nioengine=nbd\nsize=1m\n");
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_THAT(Messages(plan.error()),
              ElementsAre("LR404 `ioengine=nbd` of the fio job reaches beyond its files, which 1 "
                          "host refuses"));
}

TEST(Planner, RefusesDirectoriesThatTheAgentDoesNotName) {
  for (const auto& [path, allowed] : std::vector<std::pair<std::string, bool>>{
           {"/srv/lab", true}, {"/srv/lab/x", true}, {"/srv/laboratory", false}, {"/srv", false}}) {
    Builder builder(4);
    v1::Stack stack = MakeStack("dir", "dir");
    stack.mutable_host()->mutable_dir()->set_path(path);
    builder.AddStack(stack);
    builder.AddWorkload(MakeWrite("w", 1 << 20));
    const auto plan = MakePlan(builder.loaded, {MakeHost("a")}, Seed{1});
    EXPECT_EQ(plan.has_value(), allowed) << path;
    if (!plan) EXPECT_EQ(plan.error().problems.list()[0].code, "LR405");
  }
}

TEST(Planner, RefusesGatesOnHostsThatDoNotTakePart) {
  Builder builder = SmallPlaybook();
  builder.loaded.playbook.add_gates()->set_host("hostt-1");
  const auto plan = MakePlan(builder.loaded, {MakeHost("host-1")}, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().problems.list()[0].code, "LR409");
  EXPECT_THAT(plan.error().problems.list()[0].helps, ElementsAre("did you mean `host-1`?"));
}

TEST(Planner, BoundsTheNumberOfTrials) {
  Builder builder = SmallPlaybook(1000);
  for (int i = 0; i < 100; ++i) builder.AddWorkload(MakeWrite("x" + std::to_string(i), 1));
  const auto plan = MakePlan(builder.loaded, {MakeHost("a")}, Seed{1});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().problems.list()[0].code, "LR408");
}

TEST(Planner, EstimatesStayInRange) {
  Builder builder(1000);
  builder.AddStack(MakeStack("dir", "dir"));
  builder.loaded.playbook.mutable_stacks(0)->mutable_host()->mutable_dir()->set_path("/srv/lab");
  v1::Workload huge = MakeWrite("huge", 64ULL << 40);
  huge.mutable_stream()->set_clients(1024);
  builder.AddWorkload(huge);
  FleetView fleet;
  for (int i = 0; i < 100; ++i) fleet.push_back(MakeHost("h" + std::to_string(i)));
  const auto plan = MakePlan(builder.loaded, fleet, Seed{1});
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->write_bytes(), plan->hosts(0).write_bytes() - 1);
  EXPECT_GT(plan->duration_ns(), 0);
}

TEST(Planner, SeedZeroIsMadeFromTheText) {
  const Builder builder = SmallPlaybook();
  const auto first = MakePlan(builder.loaded, {MakeHost("a")}, Seed{0});
  const auto second = MakePlan(builder.loaded, {MakeHost("a")}, Seed{0});
  ASSERT_TRUE(first);
  EXPECT_NE(first->seed(), 0U);
  EXPECT_EQ(first->seed(), second->seed());
}

}  // namespace
}  // namespace labrack::plan
