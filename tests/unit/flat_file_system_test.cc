// Goal: files on a bare volume hold what was written, whatever the order of growing, cutting and
// removing; they are laid out in one piece where they can be; what they cannot do is said. Method:
// seeded operations against a map of strings; a model of the device's I/Os.
#include "storage/fs/flat_file_system.h"

#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/base/random.h"
#include "storage/block/disk/ram_disk.h"
#include "storage/block/wrap/stats.h"
#include "storage/runtime/sim_reactor.h"

namespace labrack::fs {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kBlock = 512;

class FlatFileSystemTest : public testing::Test {
 protected:
  explicit FlatFileSystemTest(Bytes size = 8_MiB)
      : disk_(block::RamDisk::Create({.size = size, .block_size = Bytes(kBlock)}).value()),
        stats_(reactor_, *disk_),
        files_(std::in_place, stats_) {}

  template <typename T>
  T Run(Task<T> task) {
    return reactor_.Run(std::move(task));
  }
  std::unique_ptr<File> Open(const std::string& path, OpenOptions options) {
    Result<std::unique_ptr<File>> file = Run(files_->Open(path, options));
    EXPECT_TRUE(file) << file.error().ToString();
    return file ? *std::move(file) : nullptr;
  }
  static constexpr OpenOptions kMake = {.access = Access::kReadWrite, .create = true};

  Result<void> Write(File& file, std::uint64_t at, const std::string& data) {
    return Run(file.Write({}, Offset(at), std::as_bytes(std::span(data))));
  }

  runtime::SimReactor reactor_{Seed{1}};
  std::unique_ptr<block::RamDisk> disk_;
  block::StatsDevice stats_;
  std::optional<FlatFileSystem> files_;
};

TEST_F(FlatFileSystemTest, HoldsWhatAModelHolds) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    files_.emplace(stats_);
    Random random(Seed{seed});
    std::map<std::string, std::string> model;
    for (int step = 0; step < 200; ++step) {
      const std::string name(1, static_cast<char>('a' + random.Below(4)));
      std::string& held = model[name];
      const std::unique_ptr<File> file = Open(name, kMake);
      const std::uint64_t blocks = held.size() / kBlock;
      switch (random.Below(6)) {
        case 0:
          held.resize(random.Below(blocks + 1) * kBlock);
          ASSERT_TRUE(Run(file->Truncate(Bytes(held.size()))));
          break;
        case 1:
          ASSERT_TRUE(Run(file->Close()));
          ASSERT_TRUE(Run(files_->Remove(name)));
          model.erase(name);
          break;
        case 2:
          ASSERT_TRUE(Run(file->Allocate(Offset(0), Bytes(random.Below(400) * kBlock))));
          break;
        default: {
          const std::uint64_t at = random.Below(blocks + 1) * kBlock;
          const std::string data((1 + random.Below(300)) * kBlock,
                                 static_cast<char>('A' + random.Below(26)));
          held.resize(std::max(held.size(), at + data.size()));
          held.replace(at, data.size(), data);
          ASSERT_TRUE(Write(*file, at, data));
        }
      }
    }
    for (const auto& [name, held] : model) {
      const std::unique_ptr<File> file = Open(name, {});
      std::string found(held.size() + 100 * kBlock, '?');
      const Result<Bytes> read =
          Run(file->Read({}, Offset(0), std::as_writable_bytes(std::span(found))));
      ASSERT_TRUE(read);
      EXPECT_EQ(read->count(), held.size());
      EXPECT_TRUE(found.substr(0, held.size()) == held) << name;
      EXPECT_EQ(Run(file->Status())->size.count(), held.size());
    }
    EXPECT_EQ(Run(files_->List(""))->size(), model.size());
  }
}

TEST_F(FlatFileSystemTest, AFileThatGrowsAloneIsInOnePiece) {
  const std::unique_ptr<File> file = Open("a", kMake);
  for (std::uint64_t at = 0; at < 2 << 20; at += 64 << 10) {
    ASSERT_TRUE(Write(*file, at, std::string(64 << 10, 'x')));
  }
  const std::uint64_t before = stats_.stats().Total().reads;
  std::string all(2 << 20, '?');
  ASSERT_TRUE(Run(file->ReadFull({}, Offset(0), std::as_writable_bytes(std::span(all)))));
  EXPECT_EQ(stats_.stats().Total().reads, before + 1);
  EXPECT_EQ(files_->stats().reads.count, 1u);
  EXPECT_EQ(files_->stats().reads.by_depth[1], 1u);
}

TEST_F(FlatFileSystemTest, DataSyncMakesEachWriteDurableAndSyncIsAFlush) {
  const std::unique_ptr<File> plain = Open("a", kMake);
  ASSERT_TRUE(Write(*plain, 0, std::string(kBlock, 'x')));
  EXPECT_EQ(stats_.stats().durable_writes, 0u);
  OpenOptions durable = kMake;
  durable.data_sync = true;
  const std::unique_ptr<File> synced = Open("b", durable);
  ASSERT_TRUE(Write(*synced, 0, std::string(kBlock, 'x')));
  EXPECT_EQ(stats_.stats().durable_writes, 1u);
  ASSERT_TRUE(Run(plain->Sync({}, SyncKind::kData)));
  EXPECT_EQ(stats_.stats().flushes, 1u);
}

TEST_F(FlatFileSystemTest, WhatItCannotDoIsSaid) {
  const std::unique_ptr<File> file = Open("a", kMake);
  ASSERT_TRUE(Write(*file, 0, std::string(kBlock, 'x')));
  EXPECT_THAT(Write(*file, 0, "x").error().ToString(), HasSubstr("whole blocks of 512B"));
  EXPECT_EQ(Write(*file, 4 * kBlock, std::string(kBlock, 'x')).error().code(), Errc::kUnsupported);
  EXPECT_EQ(Run(file->Truncate(Bytes(8 * kBlock))).error().code(), Errc::kUnsupported);
  EXPECT_EQ(Run(files_->Open("b", {})).error().code(), Errc::kNotFound);
  OpenOptions exclusive = kMake;
  exclusive.exclusive = true;
  EXPECT_EQ(Run(files_->Open("a", exclusive)).error().code(), Errc::kAlreadyExists);
  EXPECT_EQ(Run(files_->Remove("a")).error().code(), Errc::kBusy);
  EXPECT_EQ(Run(files_->MakeDirectory("d")).error().code(), Errc::kUnsupported);
}

TEST_F(FlatFileSystemTest, AFullDeviceRefusesAndKeepsWhatWasThere) {
  const std::unique_ptr<File> file = Open("a", kMake);
  ASSERT_TRUE(Write(*file, 0, std::string(kBlock, 'x')));
  const Result<void> full = Write(*file, kBlock, std::string(9 << 20, 'y'));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), Errc::kNoSpace);
  EXPECT_EQ(Run(file->Status())->size.count(), kBlock);
  EXPECT_TRUE(Write(*file, kBlock, std::string(7 << 20, 'y')));
}

}  // namespace
}  // namespace labrack::fs
