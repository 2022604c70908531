// Goal: the inventory says what the host says, refuses block devices, and never fails. Method:
// texts for the parsers; this very host for the rest.
#include "agent/inventory/inventory.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/inventory/environment.h"
#include "agent/inventory/host_facts.h"
#include "agent/inventory/lent_disks.h"
#include "agent/inventory/tools.h"
#include "storage/base/version.h"

namespace labrack::inventory {
namespace {

using testing::HasSubstr;

TEST(HostFactsTest, ParsersTakeWhatKernelsAndDistributionsWrite) {
  EXPECT_EQ(CpuModelFrom("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2GHz\n"),
            "Some CPU @ 2GHz");
  EXPECT_EQ(CpuModelFrom("processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "implementer 0x41, part 0xd0c");
  EXPECT_EQ(CpuModelFrom(""), "");
  EXPECT_EQ(PrettyNameFrom("ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(PrettyNameFrom("PRETTY_NAME=Arch"), "Arch");
  EXPECT_EQ(MemoryFrom("MemTotal:  100 kB\nMemAvailable:    42 kB\n", "MemAvailable"), 42_KiB);
  EXPECT_EQ(MemoryFrom("nothing", "MemAvailable"), 0_B);
}

TEST(ToolsTest, AVersionIsTheFirstLineWithANumber) {
  EXPECT_EQ(VersionFrom("\nmkfs.xfs version 6.1.0\nmore 2\n"), "mkfs.xfs version 6.1.0");
  EXPECT_EQ(VersionFrom("no digits\n"), "");
  EXPECT_LE(VersionFrom(std::string(5000, '1')).size(), 200u);
}

TEST(ToolsTest, DdIsFoundWithItsVersion) {
  const std::vector<v1::Tool> tools = FindTools();
  const auto dd = std::find_if(tools.begin(), tools.end(),
                               [](const v1::Tool& tool) { return tool.name() == "dd"; });
  ASSERT_NE(dd, tools.end());
  EXPECT_THAT(dd->version(), HasSubstr("dd"));
  EXPECT_TRUE(std::filesystem::exists(dd->path()));
}

TEST(InventoryTest, SaysWhatThisHostIs) {
  v1::AgentConfig config;
  config.set_state(testing::TempDir() + "no-such-state-yet");
  config.set_disk_space((64_MiB).count());
  (*config.mutable_labels())["role"] = "bench";
  config.add_directories("/tmp");
  config.add_directories("/no/such/directory");
  config.add_block_devices("/dev/disk/by-id/wwn-0x5000");
  const v1::Inventory host = Collect(config);
  EXPECT_FALSE(host.host_name().empty());
  EXPECT_THAT(host.kernel(), HasSubstr("Linux "));
  EXPECT_GT(host.cpu_count(), 0u);
  EXPECT_GT(host.memory_bytes(), (64_MiB).count());
  EXPECT_EQ(host.is_root(), geteuid() == 0);
  EXPECT_EQ(host.labels().at("role"), "bench");
  EXPECT_EQ(host.stack_support_size(), 6);
  ASSERT_EQ(host.directories_size(), 1);
  EXPECT_EQ(host.directories(0), "/tmp");
  EXPECT_EQ(host.agent_version(), Version());
  EXPECT_EQ(host.git_commit(), GitCommit());

  ASSERT_GE(host.disks_size(), 2);
  EXPECT_EQ(host.disks(0).kind(), "file");
  EXPECT_EQ(host.disks(0).refused(), "");
  EXPECT_LE(host.disks(0).free_bytes(), (64_MiB).count());
  EXPECT_FALSE(host.disks(0).backing().empty());
  const v1::LentDisk& block = host.disks(host.disks_size() - 1);
  EXPECT_EQ(block.kind(), "block");
  EXPECT_THAT(block.refused(), HasSubstr("not supported yet"));
  EXPECT_EQ(block.capacity_bytes(), 0u);
}

TEST(InventoryTest, ATenthStaysFreeAndTheLimitHolds) {
  EXPECT_EQ(Lendable(1000_B, 0_B), 900_B);
  EXPECT_EQ(Lendable(1000_B, 500_B), 500_B);
  EXPECT_EQ(Lendable(1000_B, 5000_B), 900_B);
  EXPECT_EQ(Lendable(0_B, 5000_B), 0_B);
}

TEST(EnvironmentTest, KeepsTheKnownInventoryAndAddsTheMoment) {
  v1::Inventory known;
  known.set_host_name("known");
  known.add_tools()->set_name("mkfs.imaginary");
  const v1::Environment environment = CollectEnvironment(&known, "/no/such/place/yet");
  EXPECT_EQ(environment.host().host_name(), "known");
  ASSERT_EQ(environment.tools_size(), 1);
  EXPECT_FALSE(environment.boot_id().empty());
  EXPECT_FALSE(environment.backing_device().empty());
  EXPECT_GT(environment.memory_available_bytes(), 0u);
  EXPECT_FALSE(CollectEnvironment(nullptr, "/tmp").host().kernel().empty());
}

TEST(VersionTest, IsThatOfTheBuild) {
  EXPECT_FALSE(Version().empty());
  EXPECT_FALSE(GitCommit().empty());
  EXPECT_EQ(GitCommit().find('@'), std::string_view::npos);
}

}  // namespace
}  // namespace labrack::inventory
