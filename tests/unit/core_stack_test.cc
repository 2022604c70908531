// Goal: stacks of our own core are built as a playbook says, on files, memory and models; what
// cannot be built says why and leaves nothing; the I/Os of an operation are those that its kind of
// volume must do. Method: small disks, single writes, readings before and after.
#include "agent/stack/core_stack.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "agent/stack/volume_shape.h"
#include "storage/base/aligned_buffer.h"

namespace labrack::stack {
namespace {

using testing::HasSubstr;

class CoreStackTest : public testing::Test {
 protected:
  CoreStackTest() {
    std::string name = testing::TempDir() + "labrack-core-stack.XXXXXX";
    directory_ = std::filesystem::canonical(mkdtemp(name.data()));
    undo_.emplace(UndoLog::Open(directory_ / "undo.log").value());
  }
  ~CoreStackTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  // `volume` and `disks` as JSON of their messages.
  BuildRequest Request(const std::string& volume, const std::string& disks) {
    BuildRequest request;
    const auto parsed =
        google::protobuf::util::JsonStringToMessage(volume, request.stack.mutable_volume());
    EXPECT_TRUE(parsed.ok()) << parsed.ToString();
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(disks, &request.disks).ok());
    request.stack.set_name("volume");
    request.disks_dir = directory_ / "disks";
    request.mount_dir = directory_ / "mount";
    request.tag = "test";
    request.seed = Seed{7};
    request.timeout = std::chrono::minutes(1);
    return request;
  }

  std::unique_ptr<BuiltStack> Build(const BuildRequest& request) {
    Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *undo_);
    EXPECT_TRUE(built) << built.error().ToString();
    return built ? *std::move(built) : nullptr;
  }

  std::string ErrorOf(const BuildRequest& request) {
    Result<std::unique_ptr<BuiltStack>> built = BuildStack(request, *undo_);
    EXPECT_FALSE(built);
    return built ? "" : built.error().ToString();
  }

  std::filesystem::path directory_;
  std::optional<UndoLog> undo_;
};

constexpr const char* kRam4 = R"({"count": 4, "size": "8388608", "kind": "DISK_KIND_RAM"})";
constexpr const char* kModel4 = R"({"count": 4, "size": "33554432", "model": "e450-7200"})";

runtime::Task<Result<void>> WriteAndCompare(fs::FileSystem* files, Bytes size, Offset at,
                                            std::byte fill) {
  AlignedBuffer data(size);
  std::ranges::fill(data.view(), fill);
  Result<std::unique_ptr<fs::File>> file = co_await files->Open(
      "a", {.access = fs::Access::kReadWrite, .create = true, .data_sync = true});
  if (!file) co_return std::unexpected(file.error());
  Result<void> written = co_await (*file)->Write({}, at, data.view());
  if (!written) co_return written;
  AlignedBuffer back(size);
  Result<void> read = co_await (*file)->ReadFull({}, at, back.view());
  if (!read) co_return read;
  if (!std::ranges::equal(data.view(), back.view())) co_return Fail(Errc::kCorrupt, "differs");
  co_return co_await (*file)->Close();
}

// "old data 1r@1, prewrite 2w@2": I/Os of a write of 2 KiB into a file that is there, without the
// read that follows; those behind the acknowledgement end in "b".
std::string IosOfSmallWrite(BuiltStack& stack) {
  CoreStack& core = *stack.core();
  const auto write = [&](Offset at, Bytes size) {
    const Result<void> done =
        core.reactor().Run(WriteAndCompare(&core.files(), size, at, std::byte{0x5a}));
    EXPECT_TRUE(done) << done.error().ToString();
  };
  write(Offset(0), 1_MiB);
  const IoReading before = core.Read();
  write(Offset(64 * 1024), 2_KiB);
  std::string text;
  for (const v1::IoSum& sum : IoUseBetween(before, core.Read()).sums()) {
    // The read back.
    const bool read_back = sum.purpose() == "user data" && sum.depth() == 1;
    const std::uint64_t reads = sum.reads() - (read_back ? 1 : 0);
    if (reads + sum.writes() == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", sum.purpose());
    if (reads > 0) text += fmt::format(" {}r", reads);
    if (sum.writes() > 0) text += fmt::format(" {}w", sum.writes());
    text += fmt::format("@{}{}", sum.depth(), sum.behind() > 0 ? "b" : "");
  }
  return text;
}

struct ShapeCase {
  const char* volume;
  const char* description;
  const char* ios;
};

class EachShape : public CoreStackTest, public testing::WithParamInterface<ShapeCase> {};

TEST_P(EachShape, HoldsDataAndDoesTheIosOfItsKind) {
  for (const char* disks : {kRam4, kModel4}) {
    std::unique_ptr<BuiltStack> stack = Build(Request(GetParam().volume, disks));
    ASSERT_TRUE(stack);
    ASSERT_TRUE(stack->core());
    EXPECT_THAT(stack->description(), HasSubstr(GetParam().description));
    EXPECT_TRUE(stack->Check());
    EXPECT_EQ(IosOfSmallWrite(*stack), GetParam().ios) << disks;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, EachShape,
    testing::Values(
        ShapeCase{R"({"concat": {}})", "concat over 4", "user data 1w@1"},
        ShapeCase{R"({"stripe": {"interlace": "8192"}})", "stripe (8KiB) over 4", "user data 1w@1"},
        ShapeCase{R"({"mirror": {"submirrors": 2}})", "mirror (2) over 2", "user data 2w@1"},
        ShapeCase{R"({"mirror": {"submirrors": 2, "of": {"stripe": {"interlace": "8192"}}}})",
                  "mirror (2) of stripe (8KiB) over 4", "user data 2w@1"},
        ShapeCase{R"({"stripe": {"interlace": "8192", "of": {"mirror": {"submirrors": 2}}}})",
                  "stripe (8KiB) of mirror (2) over 4", "user data 2w@1"},
        ShapeCase{R"({"raid5": {"interlace": "8192", "parityLog": "PARITY_LOG_NONE"}})",
                  "raid5 (8KiB, none) over 4",
                  "user data 1w@2, old data 1r@1, old parity 1r@1, parity 1w@2"},
        ShapeCase{R"({"raid5": {"interlace": "8192", "parityLog": "PARITY_LOG_PREWRITE"}})",
                  "raid5 (8KiB, prewrite) over 4",
                  "user data 1w@3b, old data 1r@1, old parity 1r@1, parity 1w@3b, prewrite 2w@2"}));

TEST_F(CoreStackTest, DisksOfFilesAreOfTheTrialAndGoWithIt) {
  const BuildRequest request = Request(
      R"({"raid5": {"interlace": "8192"}})",
      R"({"count": 3, "size": "4194304", "kind": "DISK_KIND_FILE", "prepare": "DISK_PREPARATION_WRITTEN"})");
  std::unique_ptr<BuiltStack> stack = Build(request);
  ASSERT_TRUE(stack);
  EXPECT_FALSE(stack->core()->virtual_time());
  EXPECT_TRUE(std::filesystem::exists(request.disks_dir / "disk-2"));
  EXPECT_GT(stack->capacity(), 7_MiB);
  CoreStack& core = *stack->core();
  // The disks are full of noise: what is read back is right only if parity was worked out.
  EXPECT_TRUE(
      core.reactor().Run(WriteAndCompare(&core.files(), 6_MiB, Offset(0), std::byte{0x11})));
  stack.reset();
  EXPECT_TRUE(undo_->RunAll({}));
  EXPECT_FALSE(std::filesystem::exists(request.disks_dir));
}

TEST_F(CoreStackTest, ModelledDisksLiveInVirtualTimeAndOneSeedIsOneResult) {
  const auto took = [&](Seed seed) {
    BuildRequest request = Request(R"({"stripe": {"interlace": "8192"}})", kModel4);
    request.seed = seed;
    const std::unique_ptr<BuiltStack> stack = Build(request);
    EXPECT_TRUE(stack->core()->virtual_time());
    IosOfSmallWrite(*stack);
    return stack->core()->reactor().Now();
  };
  EXPECT_EQ(took(Seed{1}), took(Seed{1}));
  EXPECT_NE(took(Seed{1}), took(Seed{2}));  // platters stand elsewhere
}

TEST_F(CoreStackTest, AQueueCanBeOfEitherPolicyOrNone) {
  for (const auto& [queue, classes] : {std::pair{v1::QUEUE_POLICY_UNSPECIFIED, true},
                                       {v1::QUEUE_POLICY_CLASSES, true},
                                       {v1::QUEUE_POLICY_LEGACY, true},
                                       {v1::QUEUE_POLICY_NONE, false}}) {
    BuildRequest request = Request(R"({"stripe": {"interlace": "8192"}})", kRam4);
    request.stack.mutable_queue()->set_policy(queue);
    if (queue == v1::QUEUE_POLICY_LEGACY) request.stack.mutable_queue()->set_pending_max(1);
    const std::unique_ptr<BuiltStack> stack = Build(request);
    ASSERT_TRUE(stack);
    const IoReading before = stack->core()->Read();
    IosOfSmallWrite(*stack);
    const v1::IoUse use = IoUseBetween(before, stack->core()->Read());
    EXPECT_EQ(use.queues_size() > 0, classes) << v1::QueuePolicy_Name(queue);
    EXPECT_EQ(DeviceUseBetween(before, stack->core()->Read()).size(), 4u);
  }
}

TEST_F(CoreStackTest, WhatCannotBeBuiltSaysWhyAndLeavesNothing) {
  const struct {
    const char* volume;
    const char* disks;
    const char* says;
  } cases[] = {
      {R"({})", kRam4, "of a kind that this agent does not know"},
      {R"({"raid5": {"interlace": "8192"}})", R"({"count": 2, "size": "8388608"})",
       "needs at least 3 disks; there are 2"},
      {R"({"mirror": {"submirrors": 2, "of": {"stripe": {"interlace": "8192"}}}})",
       R"({"count": 5, "size": "8388608"})", "cannot share 5 disks equally among its 2"},
      {R"({"stripe": {"interlace": "1000"}})", kRam4, "no multiple of the disks' block of 512B"},
      {R"({"stripe": {"interlace": "16777216"}})", kRam4, "is too small"},
      {R"({"raid5": {"interlace": "65536"}})",
       R"({"count": 3, "size": "524288", "kind": "DISK_KIND_RAM"})", "is too small"},
      {R"({"stripe": {"interlace": "8192"}})",
       R"({"count": 2, "size": "8388608", "model": "e451"})", "e450-7200"},
  };
  for (const auto& wrong : cases) {
    EXPECT_THAT(ErrorOf(Request(wrong.volume, wrong.disks)), HasSubstr(wrong.says));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "disks")) << wrong.volume;
  }
}

}  // namespace
}  // namespace labrack::stack
