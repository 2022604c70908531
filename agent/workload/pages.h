// The client of random and sync_pages: reads and writes pages at random places of a block device,
// one at a time. How often each page has been written is kept, so that all of them can be checked.
#pragma once

#include <memory>

#include "agent/workload/data.h"
#include "agent/workload/engine.h"
#include "agent/workload/page_table.h"
#include "storage/base/aligned_buffer.h"
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

runtime::Task<Result<void>> RunPages(Client* client, const PageWork* work);

}  // namespace labrack::workload
