// Goal: each workload does what it says on a real directory, gives results that add up, and its
// verification catches what a stack may do wrong. Method: small files in a temporary directory;
// damage between the measurement and the verification.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/workload/workload.h"
#include "storage/fs/host_file_system.h"
#include "storage/runtime/host_env.h"

namespace labrack::workload {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class StepsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-wl-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    file_system_ = fs::HostFileSystem::Open(root_).value();
    target_ = {.file_system = file_system_.get(), .directory = root_};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  Result<std::unique_ptr<Workload>> TryMake() {
    return MakeWorkload(spec_, Seed{11}, target_, env_);
  }
  void Make() {
    Result<std::unique_ptr<Workload>> made = TryMake();
    ASSERT_TRUE(made) << made.error().ToString();
    workload_ = *std::move(made);
  }
  void LayOut() {
    Make();
    const Result<LayOutReport> laid_out = workload_->LayOut({});
    ASSERT_TRUE(laid_out) << laid_out.error().ToString();
    laid_out_ = laid_out->written;
  }
  v1::StepResult Step(std::size_t step = 0) {
    StepOutcome outcome = workload_->RunStep(step, {});
    EXPECT_TRUE(outcome.status) << outcome.status.error().ToString();
    return outcome.result;
  }
  // Lays out and runs all steps but those after the verification.
  void RunAll() {
    LayOut();
    for (std::size_t i = 0; i <= workload_->VerifyAfter(); ++i) results_.push_back(Step(i));
  }
  VerifyReport Verify() {
    const Result<VerifyReport> report = workload_->Verify({});
    EXPECT_TRUE(report) << report.error().ToString();
    return report.value_or(VerifyReport{});
  }
  void ExpectMatched(Bytes bytes) {
    const VerifyReport report = Verify();
    EXPECT_EQ(report.outcome, v1::VERIFY_OUTCOME_MATCHED) << report.detail;
    EXPECT_EQ(report.bytes, bytes);
  }
  void ExpectMismatch(const std::string& detail) {
    const VerifyReport report = Verify();
    EXPECT_EQ(report.outcome, v1::VERIFY_OUTCOME_MISMATCHED);
    EXPECT_THAT(report.detail, HasSubstr(detail));
  }

  std::string ReadFile(const std::string& name) {
    std::ifstream file(root_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteFile(const std::string& name, const std::string& content) {
    std::ofstream(root_ / name, std::ios::binary) << content;
  }
  std::vector<std::string> WarningCodes() {
    std::vector<std::string> codes;
    for (const v1::Warning& warning : workload_->Warnings()) codes.push_back(warning.code());
    return codes;
  }
  static std::vector<std::string> Operations(const v1::StepResult& result) {
    std::vector<std::string> names;
    for (const v1::OperationResult& operation : result.operations()) {
      names.push_back(operation.operation());
    }
    return names;
  }

  v1::StreamWorkload& Stream(v1::Direction direction) {
    v1::StreamWorkload& stream = *spec_.mutable_stream();
    stream.set_direction(direction);
    stream.set_file(1'000'000);  // no multiple of anything
    stream.set_block(64 << 10);
    stream.set_sync(v1::STREAM_SYNC_END);
    stream.set_clients(2);
    stream.set_cache(v1::CACHE_COLD);
    stream.set_data(v1::DATA_KIND_RANDOM);
    stream.set_verify(v1::VERIFY_ALL);
    return stream;
  }
  v1::RandomWorkload& Random() {
    v1::RandomWorkload& random = *spec_.mutable_random();
    random.set_file(256 << 10);
    random.set_block(4096);
    random.set_read(0.5);
    random.set_clients(2);
    random.set_depth(2);
    random.mutable_stop()->set_operations(500);
    random.set_data(v1::DATA_KIND_RANDOM);
    random.set_verify(v1::VERIFY_ALL);
    return random;
  }
  v1::FilesWorkload& Files() {
    v1::FilesWorkload& files = *spec_.mutable_files();
    files.set_files(25);
    files.set_size(3000);
    files.set_per_directory(10);
    files.set_clients(2);
    files.set_fsync(true);
    files.set_cache(v1::CACHE_WARM);
    files.set_verify(v1::VERIFY_ALL);
    return files;
  }

  std::filesystem::path root_;
  std::unique_ptr<fs::HostFileSystem> file_system_;
  Target target_;
  runtime::HostEnv env_;
  v1::Workload spec_;
  std::unique_ptr<Workload> workload_;
  Bytes laid_out_;
  std::vector<v1::StepResult> results_;
};

TEST_F(StepsTest, StreamWritesAndIsVerified) {
  Stream(v1::DIRECTION_WRITE);
  RunAll();
  EXPECT_EQ(laid_out_, Bytes(0));
  EXPECT_THAT(Operations(results_[0]), ElementsAre("write", "fsync"));
  EXPECT_THAT(results_[0].counted(), ElementsAre("write"));
  EXPECT_EQ(results_[0].primary(), v1::PRIMARY_METRIC_BYTES_PER_SECOND);
  EXPECT_EQ(results_[0].operations(0).bytes(), 2'000'000U);
  EXPECT_EQ(results_[0].operations(0).count(), 2U * 16);
  EXPECT_EQ(results_[0].operations(1).count(), 2U);
  EXPECT_FALSE(workload_->WantsColdCache(0));
  ExpectMatched(Bytes(2'000'000));
}

// Where no processor is free for it and the file system is fast, waiting for data is a good part of
// the time; the result says so.
TEST_F(StepsTest, TimeThatGoesIntoWaitingForDataIsSaid) {
  v1::StreamWorkload& stream = Stream(v1::DIRECTION_WRITE);
  stream.set_file(32 << 20);
  stream.set_block(1 << 20);
  stream.set_clients(1);
  stream.set_sync(v1::STREAM_SYNC_NONE);
  Make();
  const StepOutcome outcome = workload_->RunStep(0, {});
  ASSERT_TRUE(outcome.status);
  EXPECT_GT(outcome.waiting_share, 0);
  EXPECT_LT(outcome.waiting_share, 1);
  EXPECT_GT(outcome.making, Nanoseconds(0));
  EXPECT_EQ(outcome.moved.written, 32_MiB);
  EXPECT_EQ(outcome.moved.read, Bytes(0));
  const std::vector<std::string> codes = WarningCodes();
  EXPECT_EQ(std::count(codes.begin(), codes.end(), "LW107"), outcome.waiting_share > 0.02 ? 1 : 0);
}

TEST_F(StepsTest, StreamReadsWhatWasLaidOut) {
  Stream(v1::DIRECTION_READ);
  RunAll();
  EXPECT_EQ(laid_out_, Bytes(2'000'000));
  EXPECT_THAT(Operations(results_[0]), ElementsAre("read"));
  EXPECT_EQ(results_[0].operations(0).bytes(), 2'000'000U);
  EXPECT_TRUE(workload_->WantsColdCache(0));
  ExpectMatched(Bytes(2'000'000));
}

TEST_F(StepsTest, AFlippedBitIsFound) {
  Stream(v1::DIRECTION_WRITE);
  RunAll();
  std::string content = ReadFile("stream-1.dat");
  content[777'777] ^= 1;
  WriteFile("stream-1.dat", content);
  ExpectMismatch("stream-1.dat at byte 777777: ");
}

TEST_F(StepsTest, ATruncatedFileIsFound) {
  Stream(v1::DIRECTION_WRITE);
  RunAll();
  std::filesystem::resize_file(root_ / "stream-0.dat", 999'999);
  ExpectMismatch("stream-0.dat: the file has 999999 bytes, expected 1000000");
  std::filesystem::remove(root_ / "stream-0.dat");
  ExpectMismatch("stream-0.dat: the file is gone");
}

TEST_F(StepsTest, SwappedBlocksAndSwappedFilesAreFound) {
  Stream(v1::DIRECTION_WRITE);
  RunAll();
  std::string content = ReadFile("stream-0.dat");
  const std::string right = content;
  std::swap_ranges(content.begin() + 4096, content.begin() + 8192, content.begin() + 65536);
  WriteFile("stream-0.dat", content);
  ExpectMismatch("stream-0.dat at byte 4096: holds what belongs to byte 65536 of file 0");
  WriteFile("stream-0.dat", ReadFile("stream-1.dat"));
  ExpectMismatch("belongs to byte 0 of file 1");
}

TEST_F(StepsTest, StreamWithoutSyncOrWithZerosIsMarked) {
  Stream(v1::DIRECTION_WRITE).set_sync(v1::STREAM_SYNC_NONE);
  spec_.mutable_stream()->set_data(v1::DATA_KIND_ZEROS);
  target_.cpu_count = 1;
  RunAll();
  EXPECT_THAT(WarningCodes(), UnorderedElementsAre("LW103", "LW104", "LW105"));
  ExpectMatched(Bytes(2'000'000));
}

TEST_F(StepsTest, FieldsThatContradictEachOtherAreRefused) {
  Stream(v1::DIRECTION_WRITE).set_direct(true);
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("file is 1MB, which is no multiple of 4KiB"));
  Random().set_block(1000);
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("no multiple of 512B"));
  Random().set_block(512 << 10);
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("the file has only 256KiB"));
  Random().set_depth(1024);
  spec_.mutable_random()->set_clients(1024);
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("at most 4096"));
  Files().set_clients(26);
  EXPECT_FALSE(TryMake());
}

// Refused while nothing is there yet, instead of dying of it in the measurement.
TEST_F(StepsTest, ClientsForWhichThereIsNoMemoryAreRefused) {
  target_.memory_available = 1_GiB;
  Stream(v1::DIRECTION_WRITE).set_block(64 << 20);
  spec_.mutable_stream()->set_clients(1024);
  EXPECT_EQ(TryMake().error().code(), Errc::kExhausted);
  EXPECT_THAT(TryMake().error().ToString(),
              HasSubstr("1024 of `clients` with `block` of 64MiB take 64."));
  spec_.mutable_stream()->set_clients(8);
  EXPECT_TRUE(TryMake());
  target_.cpu_count = 16;  // a block ahead for each of them
  EXPECT_EQ(TryMake().error().code(), Errc::kExhausted);
  target_.memory_available = {};  // not known
  EXPECT_TRUE(TryMake());

  target_.memory_available = 16_MiB;
  Random().set_depth(512);
  EXPECT_THAT(TryMake().error().ToString(),
              HasSubstr("1024 of `clients` times `depth` with `block` of 4KiB"));
  Files().set_files(1000);
  spec_.mutable_files()->set_clients(1000);
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("1000 of `clients` with `size` of 3kB"));
}

TEST_F(StepsTest, LayOutThatDoesNotFitIsRefusedBeforeItBegins) {
  Stream(v1::DIRECTION_READ).set_file(std::uint64_t{1} << 60);
  Make();
  const Result<LayOutReport> laid_out = workload_->LayOut({});
  ASSERT_FALSE(laid_out);
  EXPECT_EQ(laid_out.error().code(), Errc::kNoSpace);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

class CopyTest : public StepsTest, public ::testing::WithParamInterface<v1::CopyMethod> {};

TEST_P(CopyTest, CopiesAndIsVerified) {
  v1::CopyWorkload& copy = *spec_.mutable_copy();
  copy.set_file(1'000'000);
  copy.set_block(100'000);
  copy.set_method(GetParam());
  copy.set_sync(true);
  copy.set_data(v1::DATA_KIND_RANDOM);
  copy.set_verify(v1::VERIFY_ALL);
  RunAll();
  EXPECT_THAT(results_[0].counted(), ElementsAre("copy"));
  EXPECT_EQ(results_[0].operations(0).bytes(), 1'000'000U);
  EXPECT_EQ(results_[0].operations(0).count(), 10U);
  ExpectMatched(Bytes(1'000'000));
  std::string content = ReadFile("copy-to.dat");
  content[1] ^= 1;
  WriteFile("copy-to.dat", content);
  ExpectMismatch("copy-to.dat at byte 1: ");
}

INSTANTIATE_TEST_SUITE_P(Methods, CopyTest,
                         ::testing::Values(v1::COPY_METHOD_READ_WRITE,
                                           v1::COPY_METHOD_COPY_FILE_RANGE, v1::COPY_METHOD_MMAP));

// A host's directory whose files are cut short behind the mapping's back: the same to a reader as a
// page that the medium does not give.
class ShrinkingFileSystem final : public fs::FileSystem {
 public:
  ShrinkingFileSystem(fs::HostFileSystem& host, std::filesystem::path file, std::uint64_t size)
      : host_(host), file_(std::move(file)), size_(size) {}

  fs::Task<Result<std::unique_ptr<fs::File>>> Open(std::string path,
                                                   fs::OpenOptions options) override {
    return host_.Open(std::move(path), options);
  }
  fs::Task<Result<fs::FileStatus>> Status(std::string path) override {
    return host_.Status(std::move(path));
  }
  fs::Task<Result<void>> MakeDirectory(std::string path) override {
    return host_.MakeDirectory(std::move(path));
  }
  fs::Task<Result<void>> Remove(std::string path) override { return host_.Remove(std::move(path)); }
  fs::Task<Result<void>> Rename(std::string from, std::string to) override {
    return host_.Rename(std::move(from), std::move(to));
  }
  fs::Task<Result<std::vector<std::string>>> List(std::string path) override {
    return host_.List(std::move(path));
  }
  fs::Task<Result<void>> SyncAll() override { return host_.SyncAll(); }
  fs::Task<Result<fs::SpaceStatus>> Space() override { return host_.Space(); }
  fs::Task<Result<std::unique_ptr<Mapping>>> Map(fs::File& file) override {
    Result<std::unique_ptr<Mapping>> mapping = runtime::RunToCompletion(host_.Map(file));
    std::filesystem::resize_file(file_, size_);
    co_return mapping;
  }

 private:
  fs::HostFileSystem& host_;
  std::filesystem::path file_;
  std::uint64_t size_;
};

TEST_F(StepsTest, AMappedSourceThatCannotBeReadFailsTheStepAndSaysWhatIsWrongWithIt) {
  v1::CopyWorkload& copy = *spec_.mutable_copy();
  copy.set_file(1'000'000);
  copy.set_block(100'000);
  copy.set_method(v1::COPY_METHOD_MMAP);
  ShrinkingFileSystem shrinking(*file_system_, root_ / "copy-from.dat", 450'000);
  target_.file_system = &shrinking;
  LayOut();
  const StepOutcome outcome = workload_->RunStep(0, {});
  ASSERT_FALSE(outcome.status);
  const std::string said = outcome.status.error().ToString();
  EXPECT_THAT(said, HasSubstr("copy of the copy at byte 400000"));
  EXPECT_THAT(said, HasSubstr("copy-from.dat at byte 450000: the file ends here"));
  EXPECT_EQ(outcome.result.operations(0).count(), 4U);
  EXPECT_EQ(outcome.result.operations(0).error_count(), 1U);
}

class ChecksumTest : public StepsTest, public ::testing::WithParamInterface<v1::HashKind> {};

TEST_P(ChecksumTest, HashIsThatOfTheData) {
  v1::ChecksumWorkload& checksum = *spec_.mutable_checksum();
  checksum.set_file(1'000'000);
  checksum.set_block(128 << 10);
  checksum.set_hash(GetParam());
  RunAll();
  EXPECT_THAT(Operations(results_[0]), ElementsAre("read", "hash"));
  EXPECT_EQ(results_[0].operations(0).bytes(), 1'000'000U);
  ExpectMatched(Bytes(1'000'000));
  // The hash that was measured is that of other data now.
  std::string content = ReadFile("checksum.dat");
  content[500'000] ^= 1;
  WriteFile("checksum.dat", content);
  Step();
  ExpectMismatch("checksum.dat: ");
}

INSTANTIATE_TEST_SUITE_P(Hashes, ChecksumTest,
                         ::testing::Values(v1::HASH_KIND_MD5, v1::HASH_KIND_XXH3));

TEST_F(StepsTest, ChecksumOfAHoleIsThatOfZeros) {
  v1::ChecksumWorkload& checksum = *spec_.mutable_checksum();
  checksum.set_file(1 << 20);
  checksum.set_block(128 << 10);
  checksum.set_hash(v1::HASH_KIND_MD5);
  checksum.set_holes(true);
  RunAll();
  const VerifyReport report = Verify();
  EXPECT_EQ(report.outcome, v1::VERIFY_OUTCOME_MATCHED);
  EXPECT_THAT(report.detail, HasSubstr("b6d81b360a5672d80c27430f39153e2c"));  // of 1 MiB of zeros
}

TEST_F(StepsTest, RandomMixesReadsAndWritesAndIsVerified) {
  Random();
  RunAll();
  const v1::StepResult& result = results_[0];
  EXPECT_THAT(Operations(result), ElementsAre("read", "write"));
  EXPECT_THAT(result.counted(), ElementsAre("read", "write"));
  EXPECT_EQ(result.operations(0).count() + result.operations(1).count(), 500U);
  EXPECT_GT(result.operations(1).count(), 150U);
  ExpectMatched(Bytes(256 << 10));
}

TEST_F(StepsTest, ALostWriteOfRandomIsFound) {
  Random();
  LayOut();
  const std::string before = ReadFile("random.dat");
  Step();
  WriteFile("random.dat", before);
  ExpectMismatch("an acknowledged write is lost");
}

TEST_F(StepsTest, StopByBytesEndsWithTheBlockThatReachesIt) {
  Random().mutable_stop()->clear_operations();
  spec_.mutable_random()->mutable_stop()->set_bytes(40'000);
  spec_.mutable_random()->set_read(1);
  RunAll();
  EXPECT_EQ(results_[0].operations(0).count(), 10U);
}

TEST_F(StepsTest, SyncPagesOverwriteAndAreVerified) {
  v1::SyncPagesWorkload& pages = *spec_.mutable_sync_pages();
  pages.set_size(2048);
  pages.set_file(100'000);  // the last page is cut off, and is not written
  pages.set_clients(2);
  pages.set_duration(100'000'000);
  pages.set_verify(v1::VERIFY_ALL);
  RunAll();
  EXPECT_THAT(Operations(results_[0]), ElementsAre("write"));
  EXPECT_GE(results_[0].measure_end_mono_ns() - results_[0].measure_begin_mono_ns(), 99'000'000);
  ExpectMatched(Bytes(100'000));
}

TEST_F(StepsTest, FilesAreMadeLookedUpReadAndDeleted) {
  Files();
  RunAll();
  ASSERT_EQ(results_.size(), 3U);  // create, stat, read: then the verification is due
  EXPECT_THAT(Operations(results_[0]), ElementsAre("create", "open", "write", "close", "fsync"));
  EXPECT_THAT(results_[0].counted(), ElementsAre("create"));
  for (const v1::OperationResult& operation : results_[0].operations()) {
    EXPECT_EQ(operation.count(), 25U) << operation.operation();
  }
  EXPECT_EQ(results_[0].operations(0).bytes(), 25U * 3000);
  EXPECT_THAT(Operations(results_[1]), ElementsAre("stat"));
  EXPECT_THAT(Operations(results_[2]), ElementsAre("read", "open", "read_data", "close"));
  EXPECT_TRUE(std::filesystem::exists(root_ / "files-000002/f00000024"));
  ExpectMatched(Bytes(25 * 3000));
  const v1::StepResult deleted = Step(3);
  EXPECT_EQ(deleted.operations(0).count(), 25U);
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "files-000002"));
  EXPECT_EQ(Verify().outcome, v1::VERIFY_OUTCOME_NOT_POSSIBLE);
}

// With processors to spare, data is made beside the clients; what is written is the same.
TEST_F(StepsTest, WhatWasMadeAheadIsVerified) {
  target_.cpu_count = 64;
  Stream(v1::DIRECTION_WRITE);
  RunAll();
  ExpectMatched(Bytes(2'000'000));

  std::filesystem::remove(root_ / "stream-0.dat");
  std::filesystem::remove(root_ / "stream-1.dat");
  Files().set_files(5);
  spec_.mutable_files()->set_size(2'500'000);  // in pieces
  RunAll();
  ExpectMatched(Bytes(5 * 2'500'000));
}

// Pages are claimed when they are chosen, so those that were never written are given back.
TEST_F(StepsTest, PagesChosenAheadAreGivenBack) {
  target_.cpu_count = 64;
  Random().set_file(2 << 20);
  spec_.mutable_random()->set_depth(1);
  spec_.mutable_random()->set_read(0);
  spec_.mutable_random()->mutable_stop()->set_duration(2'000'000'000);
  LayOut();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(Step().operations(0).count(), 500U);
  ExpectMatched(2_MiB);
}

TEST_F(StepsTest, AMissingFileFailsTheStepThatNeedsIt) {
  Files();
  LayOut();
  Step(0);
  std::filesystem::remove(root_ / "files-000001/f00000013");
  const StepOutcome outcome = workload_->RunStep(1, {});
  ASSERT_FALSE(outcome.status);
  EXPECT_EQ(outcome.status.error().code(), Errc::kNotFound);
  EXPECT_THAT(outcome.status.error().ToString(), HasSubstr("stat of files-000001/f00000013"));
  EXPECT_THAT(Verify().detail, HasSubstr("the file is gone"));
}

TEST_F(StepsTest, FilesAreLaidOutForStepsWithoutCreate) {
  Files().add_steps(v1::FILES_STEP_STAT);
  spec_.mutable_files()->set_size(0);
  RunAll();
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].operations(0).count(), 25U);
  ExpectMatched(Bytes(0));
}

TEST_F(StepsTest, ExecIsRefusedUnlessTheAgentAllowsIt) {
  spec_.mutable_exec()->add_command("true");
  EXPECT_EQ(TryMake().error().code(), Errc::kPermissionDenied);
}

TEST_F(StepsTest, ExecIsTimedAndItsFiguresAreRead) {
  v1::ExecWorkload& exec = *spec_.mutable_exec();
  for (const char* word :
       {"sh", "-c", "echo rate 1.5 rate 2.5; echo rate 3.25; echo in $0 >&2", "{dir}/x"}) {
    exec.add_command(word);
  }
  exec.set_timeout(10'000'000'000);
  v1::ExecFigure& rate = *exec.add_figures();
  rate.set_name("rate");
  rate.set_match("rate ([0-9.]+)");
  rate.set_unit("MB/s");
  target_.allow_exec = true;
  RunAll();
  const v1::StepResult& result = results_[0];
  EXPECT_EQ(result.primary(), v1::PRIMARY_METRIC_SECONDS);
  ASSERT_EQ(result.figures_size(), 1);
  EXPECT_EQ(result.figures(0).value(), 3.25);  // the last match counts
  EXPECT_THAT(result.output_tail(), HasSubstr("in " + root_.string() + "/x"));
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_TRUE(result.has_cpu());
  EXPECT_EQ(Verify().outcome, v1::VERIFY_OUTCOME_NOT_POSSIBLE);
}

TEST_F(StepsTest, ExecThatFailsFailsTheStep) {
  v1::ExecWorkload& exec = *spec_.mutable_exec();
  for (const char* word : {"sh", "-c", "echo no such thing >&2; exit 3"}) exec.add_command(word);
  exec.set_timeout(10'000'000'000);
  target_.allow_exec = true;
  LayOut();
  const StepOutcome outcome = workload_->RunStep(0, {});
  ASSERT_FALSE(outcome.status);
  EXPECT_THAT(outcome.status.error().ToString(), HasSubstr("no such thing"));
  EXPECT_EQ(outcome.result.exit_code(), 3);
}

TEST_F(StepsTest, AFigureThatIsNotThereFailsTheStep) {
  v1::ExecWorkload& exec = *spec_.mutable_exec();
  exec.add_command("true");
  exec.set_timeout(10'000'000'000);
  v1::ExecFigure& rate = *exec.add_figures();
  rate.set_name("rate");
  rate.set_match("rate ([0-9.]+)");
  target_.allow_exec = true;
  LayOut();
  EXPECT_EQ(workload_->RunStep(0, {}).status.error().code(), Errc::kNotFound);
  rate.set_match("rate [0-9.]+");
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("has no group"));
  rate.set_match("rate ([0-9.+");
  EXPECT_THAT(TryMake().error().ToString(), HasSubstr("is no regular expression"));
}

TEST_F(StepsTest, BufferedReadsOfASmallFileAreMarked) {
  Random().set_direct(false);
  target_.memory = Bytes(1 << 30);
  Make();
  EXPECT_THAT(WarningCodes(), UnorderedElementsAre("LW102", "LW103"));
  spec_.mutable_random()->set_direct(true);
  Make();
  EXPECT_THAT(WarningCodes(), ElementsAre());
}

}  // namespace
}  // namespace labrack::workload
