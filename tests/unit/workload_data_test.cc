// Goal: data that workloads write cannot be compressed, is the same for one seed, and every kind of
// damage is found and named. Method: fill, damage in each way, compare.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "agent/workload/data.h"
#include "agent/workload/page_table.h"

namespace labrack::workload {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kSize = 16 << 10;
constexpr Offset kAt(1 << 20);
constexpr FileId kFile{7};
constexpr Generation kNow{5};

class DataTest : public ::testing::Test {
 protected:
  DataTest() : block_(kSize) { data_.Fill(kFile, kAt, kNow, block_); }

  std::string Damage() {
    const std::optional<Mismatch> mismatch = data_.Compare(kFile, kAt, kNow, block_);
    return mismatch ? std::to_string(mismatch->at.value() - kAt.value()) + ": " + mismatch->what
                    : "none";
  }

  Data data_{Seed{42}, v1::DATA_KIND_RANDOM};
  std::vector<std::byte> block_;
};

TEST_F(DataTest, ComparesWithItself) {
  EXPECT_EQ(Damage(), "none");
  // In any pieces, and with a rest that is no whole sector.
  std::vector<std::byte> pieces(kSize);
  const MutableView view(pieces);
  data_.Fill(kFile, kAt, kNow, view.first(512));
  data_.Fill(kFile, kAt + 512_B, kNow, view.subspan(512, 3000 / 512 * 512 + 100));
  data_.Fill(kFile, kAt + 3072_B, kNow, view.subspan(3072));
  EXPECT_EQ(pieces, block_);
  EXPECT_FALSE(data_.Compare(kFile, kAt, kNow, ConstView(block_).first(777)));
}

TEST_F(DataTest, FindsAFlippedBit) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{600}, kSize - 1}) {
    block_[at] ^= std::byte{0x10};
    EXPECT_THAT(Damage(), ::testing::StartsWith(std::to_string(at) + ": "));
    EXPECT_THAT(Damage(), HasSubstr("1 of 512 bytes of this sector differ (damaged or torn)"));
    block_[at] ^= std::byte{0x10};
  }
}

TEST_F(DataTest, FindsABlockInAWrongPlace) {
  data_.Fill(kFile, Offset(3 << 20), kNow, MutableView(block_).first(4096));
  EXPECT_THAT(Damage(), HasSubstr("belongs to byte 3145728 of file 7"));
  data_.Fill(FileId{8}, kAt, kNow, MutableView(block_).first(4096));
  EXPECT_THAT(Damage(), HasSubstr("belongs to byte 1048576 of file 8"));
}

TEST_F(DataTest, FindsALostWrite) {
  data_.Fill(kFile, kAt, Generation{4}, block_);
  EXPECT_THAT(Damage(), HasSubstr("holds generation 4 of this place, expected 5"));
  EXPECT_THAT(Damage(), HasSubstr("an acknowledged write is lost"));
}

TEST_F(DataTest, FindsATornWrite) {
  data_.Fill(kFile, kAt + 8192_B, Generation{4}, MutableView(block_).subspan(8192));
  EXPECT_THAT(Damage(), ::testing::StartsWith("8200: "));
  EXPECT_THAT(Damage(), HasSubstr("holds generation 4"));
}

TEST_F(DataTest, FindsZerosAndForeignData) {
  std::fill(block_.begin() + 512, block_.end(), std::byte{0});
  EXPECT_THAT(Damage(), HasSubstr("got zeros"));
  Data other(Seed{43}, v1::DATA_KIND_RANDOM);
  other.Fill(kFile, kAt, kNow, block_);
  EXPECT_THAT(Damage(), HasSubstr("foreign data"));
}

TEST_F(DataTest, CannotBeCompressed) {
  std::vector<std::byte> large(1 << 20);
  data_.Fill(kFile, Offset(0), Generation{0}, large);
  uLongf packed_size = compressBound(large.size());
  std::vector<Bytef> packed(packed_size);
  ASSERT_EQ(compress2(packed.data(), &packed_size, reinterpret_cast<const Bytef*>(large.data()),
                      large.size(), 9),
            Z_OK);
  EXPECT_GT(packed_size, large.size() * 999 / 1000);
  // Nor are any two sectors alike.
  std::vector<std::string> sectors;
  for (std::size_t at = 0; at < large.size(); at += 512) {
    sectors.emplace_back(reinterpret_cast<const char*>(large.data()) + at, 512);
  }
  std::sort(sectors.begin(), sectors.end());
  EXPECT_EQ(std::adjacent_find(sectors.begin(), sectors.end()), sectors.end());
}

TEST_F(DataTest, ZerosAreComparedToo) {
  const Data zeros(Seed{1}, v1::DATA_KIND_ZEROS);
  zeros.Fill(kFile, kAt, kNow, block_);
  EXPECT_FALSE(zeros.Compare(kFile, kAt, kNow, block_));
  block_[1000] = std::byte{1};
  const std::optional<Mismatch> mismatch = zeros.Compare(kFile, kAt, kNow, block_);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->at, kAt + 1000_B);
}

TEST(PageTable, KeepsOneWriterAPage) {
  PageTable table(2);
  EXPECT_EQ(table.Claim(0), Generation{1});
  EXPECT_EQ(table.Claim(0), std::nullopt);
  EXPECT_EQ(table.Claim(1), Generation{1});
  EXPECT_EQ(table.Last(0), Generation{0});
  table.Acknowledge(0, Generation{1});
  EXPECT_EQ(table.Last(0), Generation{1});
  EXPECT_EQ(table.Claim(0), Generation{2});
  table.Release(0);
  EXPECT_EQ(table.Last(0), Generation{1});
  EXPECT_EQ(table.Claim(0), Generation{2});
}

}  // namespace
}  // namespace labrack::workload
