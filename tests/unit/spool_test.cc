// Goal: a spool gives back what was written, or a prefix of it, whatever a crash or a disk does to
// its end; damage elsewhere loses the damaged records only; a full disk never loses the result.
// Method: seeded records; cut at every byte, flip every bit of a small spool; a tmpfs of few
// megabytes that is filled.
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

#include "agent/worker/spool/crc32c.h"
#include "agent/worker/spool/spool_reader.h"
#include "agent/worker/spool/spool_writer.h"
#include "storage/base/random.h"

namespace labrack::spool {
namespace {

const Identity kIdentity{.assignment_id = "run-1/0/st-01", .epoch = 7};

// In memory where that is possible: the tests below make and sync thousands of files.
class TempDirectory {
 public:
  TempDirectory() {
    std::filesystem::path parent = "/dev/shm";
    if (access(parent.c_str(), W_OK) != 0) parent = std::filesystem::temp_directory_path();
    std::string pattern = (parent / "spool-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string RandomPayload(Random& random, std::size_t length_max) {
  std::string payload(random.Below(length_max), '\0');
  for (char& c : payload) c = static_cast<char>(random.Next());
  return payload;
}

std::vector<Record> WriteRecords(const std::filesystem::path& directory, Limits limits, Seed seed,
                                 std::size_t count, std::size_t length_max, bool seal) {
  Random random(seed);
  std::vector<Record> records;
  Result<SpoolWriter> writer = SpoolWriter::Create(directory, kIdentity, limits);
  EXPECT_TRUE(writer) << writer.error().ToString();
  for (std::size_t i = 0; i < count; ++i) {
    Record record{.type = i + 1 == count ? RecordType::kResult : RecordType::kDetail,
                  .seq = writer->next_seq(),
                  .mono_ns = static_cast<std::int64_t>(i * 1000),
                  .payload = RandomPayload(random, length_max)};
    EXPECT_TRUE(writer->Append(record.type, Durability::kWithNext, record.mono_ns, record.payload));
    records.push_back(std::move(record));
  }
  if (seal) EXPECT_TRUE(writer->Seal());
  return records;
}

std::vector<Record> ReadAll(SpoolReader& reader) {
  std::vector<Record> records;
  for (;;) {
    Result<std::optional<Record>> record = reader.Next();
    EXPECT_TRUE(record) << record.error().ToString();
    if (!record || !*record) return records;
    records.push_back(**record);
  }
}

bool Same(const Record& a, const Record& b) {
  return a.type == b.type && a.seq == b.seq && a.mono_ns == b.mono_ns && a.payload == b.payload;
}

bool IsPrefix(const std::vector<Record>& read, const std::vector<Record>& written) {
  return read.size() <= written.size() &&
         std::equal(read.begin(), read.end(), written.begin(), Same);
}

std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void SetFileText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(SpoolTest, CrcMatchesThePublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), 0xe3069283U);
}

TEST(SpoolTest, GivesBackWhatWasWrittenOverSeveralSegments) {
  TempDirectory temp;
  const std::vector<Record> written =
      WriteRecords(temp.path() / "s", {.segment = 4_KiB}, Seed{1}, 200, 300, true);
  SpoolReader reader(temp.path() / "s", kIdentity);
  const std::vector<Record> read = ReadAll(reader);
  EXPECT_EQ(read.size(), written.size());
  EXPECT_TRUE(IsPrefix(read, written));
  EXPECT_TRUE(reader.sealed());
  EXPECT_TRUE(reader.damage().empty());
  EXPECT_GT(ListSegments(temp.path() / "s")->size(), 3U);
}

TEST(SpoolTest, ReaderFollowsAWriter) {
  TempDirectory temp;
  SpoolReader reader(temp.path() / "s", kIdentity);
  EXPECT_TRUE(ReadAll(reader).empty());
  Result<SpoolWriter> writer =
      SpoolWriter::Create(temp.path() / "s", kIdentity, {.segment = 1_KiB});
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(ReadAll(reader).empty());
    EXPECT_FALSE(reader.sealed());
    ASSERT_TRUE(
        writer->Append(RecordType::kState, Durability::kNow, i, "record " + std::to_string(i)));
    const std::vector<Record> read = ReadAll(reader);
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].payload, "record " + std::to_string(i));
  }
  ASSERT_TRUE(writer->Seal());
  EXPECT_TRUE(ReadAll(reader).empty());
  EXPECT_TRUE(reader.sealed());
}

TEST(SpoolTest, EveryCutOfTheTailLeavesAPrefixAndCanBeEnded) {
  TempDirectory temp;
  const std::filesystem::path directory = temp.path() / "s";
  const std::vector<Record> written = WriteRecords(directory, {}, Seed{2}, 12, 40, false);
  const std::filesystem::path segment = SegmentPath(directory, 1);
  const std::string whole = FileText(segment);
  std::size_t longest = 0;
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    SetFileText(segment, whole.substr(0, cut));
    SpoolReader reader(directory, kIdentity);
    const std::vector<Record> read = ReadAll(reader);
    ASSERT_TRUE(IsPrefix(read, written)) << "cut at " << cut;
    ASSERT_GE(read.size(), longest);
    longest = read.size();
    {
      Result<SpoolWriter> writer = SpoolWriter::Resume(directory, kIdentity, {});
      ASSERT_TRUE(writer) << writer.error().ToString();
      ASSERT_EQ(writer->next_seq(), read.size() + 1);
      ASSERT_TRUE(writer->Append(RecordType::kResult, Durability::kWithNext, 1, "the end"));
      ASSERT_TRUE(writer->Seal());
    }
    SpoolReader again(directory, kIdentity);
    const std::vector<Record> ended = ReadAll(again);
    ASSERT_EQ(ended.size(), read.size() + 1);
    ASSERT_EQ(ended.back().payload, "the end");
    ASSERT_TRUE(again.sealed());
    ASSERT_TRUE(again.damage().empty());
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
  }
  EXPECT_EQ(longest, written.size());
}

TEST(SpoolTest, EveryFlippedBitOfAnOpenSegmentLeavesAPrefix) {
  TempDirectory temp;
  const std::filesystem::path directory = temp.path() / "s";
  const std::vector<Record> written = WriteRecords(directory, {}, Seed{3}, 8, 30, false);
  const std::filesystem::path segment = SegmentPath(directory, 1);
  const std::string whole = FileText(segment);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    SetFileText(segment, flipped);
    SpoolReader reader(directory, kIdentity);
    ASSERT_TRUE(IsPrefix(ReadAll(reader), written)) << "bit " << bit;
    ASSERT_FALSE(reader.sealed());
  }
}

TEST(SpoolTest, AFlippedBitOfAClosedSegmentLosesAtMostOneRecordAndIsReported) {
  TempDirectory temp;
  const std::filesystem::path directory = temp.path() / "s";
  const std::vector<Record> written = WriteRecords(directory, {}, Seed{4}, 8, 30, true);
  const std::filesystem::path segment = SegmentPath(directory, 1);
  const std::string whole = FileText(segment);
  const std::size_t footer = kRecordHead + kRecordFixed + kFooterPayload;
  for (std::size_t bit = 0; bit < (whole.size() - footer) * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    SetFileText(segment, flipped);
    SpoolReader reader(directory, kIdentity);
    const std::vector<Record> read = ReadAll(reader);
    ASSERT_GE(read.size() + 1, written.size()) << "bit " << bit;
    for (const Record& record : read) {
      ASSERT_TRUE(Same(record, written[record.seq - 1])) << "bit " << bit;
    }
    ASSERT_EQ(reader.damage().size(), 1U) << "bit " << bit;
    ASSERT_TRUE(reader.sealed());
  }
}

TEST(SpoolTest, DamageInAnEarlierSegmentDoesNotStopTheReader) {
  TempDirectory temp;
  const std::filesystem::path directory = temp.path() / "s";
  const std::vector<Record> written =
      WriteRecords(directory, {.segment = 2_KiB}, Seed{5}, 100, 200, true);
  const std::filesystem::path segment = SegmentPath(directory, 2);
  SetFileText(segment, std::string(FileText(segment).size(), 'x'));
  SpoolReader reader(directory, kIdentity);
  const std::vector<Record> read = ReadAll(reader);
  EXPECT_LT(read.size(), written.size());
  EXPECT_TRUE(Same(read.back(), written.back()));
  EXPECT_EQ(reader.damage().size(), 1U);
  EXPECT_TRUE(reader.sealed());
}

TEST(SpoolTest, RefusesASpoolOfAnotherEpochAndASecondCreate) {
  TempDirectory temp;
  WriteRecords(temp.path() / "s", {}, Seed{6}, 3, 10, true);
  SpoolReader reader(temp.path() / "s", {.assignment_id = kIdentity.assignment_id, .epoch = 8});
  Result<std::optional<Record>> record = reader.Next();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code(), Errc::kCorrupt);
  EXPECT_EQ(SpoolWriter::Create(temp.path() / "s", kIdentity, {}).error().code(),
            Errc::kAlreadyExists);
  EXPECT_EQ(SpoolWriter::Resume(temp.path() / "s", kIdentity, {}).error().code(),
            Errc::kAlreadyExists);
}

// On a full disk half a record is seen, cut off again, and another one takes its place.
TEST(SpoolTest, AReaderForgetsThePieceOfARecordThatWasCutOff) {
  TempDirectory temp;
  const std::filesystem::path spool = temp.path() / "s";
  Result<SpoolWriter> writer = SpoolWriter::Create(spool, kIdentity, {});
  ASSERT_TRUE(writer->Append(RecordType::kState, Durability::kNow, 0, "begun"));
  const std::uintmax_t size = std::filesystem::file_size(SegmentPath(spool, 1));
  const std::string detail = EncodeRecord(RecordType::kDetail, 2, 0, std::string(500, 'd'));
  std::ofstream(SegmentPath(spool, 1), std::ios::binary | std::ios::app) << detail.substr(0, 200);
  SpoolReader reader(spool, kIdentity);
  EXPECT_EQ(ReadAll(reader).size(), 1U);
  std::filesystem::resize_file(SegmentPath(spool, 1), size);
  ASSERT_TRUE(writer->Append(RecordType::kResult, Durability::kNow, 0, std::string(500, 'r')));
  const std::vector<Record> read = ReadAll(reader);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].payload, std::string(500, 'r'));
  ASSERT_TRUE(writer->Seal());
  EXPECT_TRUE(ReadAll(reader).empty());
  EXPECT_TRUE(reader.sealed());
  EXPECT_TRUE(reader.damage().empty());
}

// The writer died while it made the segment, or somebody else's spool was put aside.
TEST(SpoolTest, AReaderFollowsWhenASegmentIsMadeAnewUnderIt) {
  TempDirectory temp;
  const std::filesystem::path spool = temp.path() / "s";
  for (const std::string& begin : {std::string("LRSP"), EncodeHeader({.identity = {"other", 1}})}) {
    std::filesystem::create_directory(spool);
    std::ofstream(SegmentPath(spool, 1), std::ios::binary) << begin;
    SpoolReader reader(spool, kIdentity);
    const Result<std::optional<Record>> none = reader.Next();
    if (none) {
      EXPECT_FALSE(*none);
    } else {
      EXPECT_EQ(none.error().code(), Errc::kCorrupt);
      std::filesystem::rename(spool, temp.path() / "foreign");
    }
    Result<SpoolWriter> writer = SpoolWriter::Resume(spool, kIdentity, {});
    ASSERT_TRUE(writer) << writer.error().ToString();
    ASSERT_TRUE(writer->Append(RecordType::kResult, Durability::kNow, 0, "the result"));
    ASSERT_TRUE(writer->Seal());
    const std::vector<Record> read = ReadAll(reader);
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].payload, "the result");
    EXPECT_TRUE(reader.sealed());
    std::filesystem::remove_all(spool);
  }
}

TEST(SpoolTest, BeyondItsLimitDetailsAreDroppedAndStateIsKept) {
  TempDirectory temp;
  Result<SpoolWriter> writer = SpoolWriter::Create(temp.path() / "s", kIdentity, {.trial = 10_KiB});
  const std::string payload(4096, 'd');
  EXPECT_TRUE(writer->Append(RecordType::kDetail, Durability::kWithNext, 0, payload));
  EXPECT_TRUE(writer->Append(RecordType::kDetail, Durability::kWithNext, 0, payload));
  EXPECT_EQ(writer->Append(RecordType::kDetail, Durability::kWithNext, 0, payload).error().code(),
            Errc::kNoSpace);
  EXPECT_EQ(writer->dropped_count(), 1U);
  EXPECT_TRUE(writer->Append(RecordType::kState, Durability::kNow, 0, payload));
  EXPECT_TRUE(writer->Append(RecordType::kResult, Durability::kWithNext, 0, payload));
  EXPECT_TRUE(writer->Seal());
  SpoolReader reader(temp.path() / "s", kIdentity);
  EXPECT_EQ(ReadAll(reader).size(), 4U);
}

// In a child with a mount namespace of its own, so that nothing stays behind. Exit codes: 0 right,
// 77 not possible here.
int FillATinyDisk(const std::filesystem::path& mount_point) {
  if (unshare(CLONE_NEWNS) != 0) return 77;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=6m") != 0) return 77;
  Result<SpoolWriter> writer = SpoolWriter::Create(mount_point / "s", kIdentity, {});
  if (!writer) return 1;
  if (!writer->Append(RecordType::kState, Durability::kNow, 0, "begun")) return 2;
  const std::string payload(100'000, 'd');
  std::uint64_t kept = 0;
  while (writer->Append(RecordType::kDetail, Durability::kWithNext, 0, payload)) {
    if (++kept > 1000) return 3;
  }
  // The rest of the disk goes to somebody else.
  Descriptor hog(open((mount_point / "hog").c_str(), O_WRONLY | O_CREAT, 0600));
  while (write(hog.get(), payload.data(), payload.size()) > 0) {
  }
  if (!writer->Append(RecordType::kResult, Durability::kWithNext, 0,
                      std::string(kPayloadMax.size(), 'r')))
    return 4;
  if (!writer->Seal()) return 5;
  SpoolReader reader(mount_point / "s", kIdentity);
  const std::vector<Record> read = ReadAll(reader);
  if (read.size() != kept + 2 || !reader.sealed() || !reader.damage().empty()) return 6;
  return read.back().payload.size() == kPayloadMax.size() ? 0 : 7;
}

TEST(SpoolTest, AFullDiskStillTakesTheResult) {
  TempDirectory temp;
  const pid_t child = fork();
  if (child == 0) _exit(FillATinyDisk(temp.path()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "a tmpfs cannot be mounted here (not root)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace labrack::spool
