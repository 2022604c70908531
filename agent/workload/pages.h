// The client of random and sync_pages: reads and writes pages at random places of a block device,
// one at a time. How often each page has been written is kept, so that all of them can be checked.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "agent/workload/data.h"
#include "agent/workload/data_feed.h"
#include "agent/workload/engine.h"
#include "agent/workload/page_table.h"
#include "storage/block/block_device.h"

namespace labrack::workload {

// What one client works on. All of it outlives the client.
struct PageWork {
  // Kinds of operation, as indexes into the StepPlan's; reads never happen where read_share is 0.
  std::size_t read_kind = 0;
  std::size_t write_kind = 0;

  block::BlockDevice* device = nullptr;
  std::string name = {};  // of the device or file, for messages
  Bytes page = {};
  std::uint64_t page_count = 0;
  double read_share = 0;
  const Data* data = nullptr;
  FileId file = {};
  PageTable* table = nullptr;  // null: nothing will be verified
};

// What one client does next: which pages it reads, and which it writes with what. Made in the slots
// of its DataFeed, so that data can be made ahead: a page is claimed when it is chosen.
class PageFeed {
 public:
  struct Pick {
    bool read = false;
    bool found = true;  // false: all pages that were tried are being written; look again later
    std::uint64_t page = 0;
    Generation generation = {};
  };

  // No more pages are claimed ahead than leave plenty of others to choose.
  static FeedShape Shape(const PageWork& work, std::uint32_t clients, std::uint32_t cpu_count);

  PageFeed(const PageWork* work, Seed seed, FeedShape shape)
      : work_(work), random_(seed), picks_(shape.slots) {}

  DataFeed::Make Make();  // outlived by this
  const Pick& pick(std::size_t slot) const { return picks_[slot]; }
  void Release(const Pick& pick);  // which is not written after all

 private:
  void PickPage(Pick& pick);
  void PickForWriting(Pick& pick);

  const PageWork* work_;
  Random random_;
  std::uint32_t own_generation_ = 0;
  std::vector<Pick> picks_;  // by slot
};

// `feed` and `data`: of this client; null where pages are only read.
runtime::Task<Result<void>> RunPages(Client* client, const PageWork* work, PageFeed* feed = nullptr,
                                     DataFeed* data = nullptr);

}  // namespace labrack::workload
