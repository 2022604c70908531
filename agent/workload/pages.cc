#include "agent/workload/pages.h"

#include <fmt/format.h>

#include "storage/base/aligned_buffer.h"

namespace labrack::workload {
namespace {

using runtime::Task;

// When so many pages in a row are being written by others, the file is small for its clients, and
// the client waits a little instead of spinning.
constexpr int kDrawsMax = 64;

std::string Where(const PageWork& work, Offset at) {
  return fmt::format("{} at byte {}", work.name, at.value());
}

// A client claims pages ahead while these are at most one in so many.
constexpr std::uint64_t kPagesPerClaim = 4;

Task<Result<void>> ReadPages(Client* client, const PageWork* work) {
  AlignedBuffer buffer(work->page);
  while (true) {
    const Offset at(client->random().Below(work->page_count) * work->page.count());
    bool more = true;
    if (client->paced()) more = co_await client->Pace();
    if (!more || !client->Begin()) co_return Result<void>();
    Result<void> done = co_await work->device->Read({}, at, buffer.view());
    if (!done) co_return client->Failed(work->read_kind, Where(*work, at), done.error());
    client->End(work->read_kind, work->page);
  }
}

// The page is chosen and its data made before the operation begins: neither belongs to its time.
// (That includes the schedule of an open loop, hence before Pace.)
Task<Result<void>> MixPages(Client* client, const PageWork* work, PageFeed* feed, DataFeed* data) {
  while (true) {
    if (!data->Ready(client)) co_await data->Wait(client);
    const DataFeed::Block block = data->Take().value();
    const PageFeed::Pick& pick = feed->pick(block.slot);
    if (!pick.found) {
      const bool waited = co_await client->Rest();
      if (!waited) co_return Result<void>();
      continue;
    }
    bool more = true;
    if (client->paced()) more = co_await client->Pace();
    if (!more || !client->Begin()) {
      feed->Release(pick);
      co_return Result<void>();
    }
    const Offset at(pick.page * work->page.count());
    if (pick.read) {
      Result<void> done = co_await work->device->Read({}, at, block.data);
      if (!done) co_return client->Failed(work->read_kind, Where(*work, at), done.error());
      client->End(work->read_kind, work->page);
    } else {
      Result<void> done = co_await work->device->Write({}, at, block.data);
      if (!done) co_return client->Failed(work->write_kind, Where(*work, at), done.error());
      client->End(work->write_kind, work->page);
      if (work->table != nullptr) work->table->Acknowledge(pick.page, pick.generation);
    }
  }
}

}  // namespace

FeedShape PageFeed::Shape(const PageWork& work, std::uint32_t clients, std::uint32_t cpu_count) {
  const FeedShape shape = FeedShape::For(work.page, clients, cpu_count);
  const bool crowded = shape.slots * clients > work.page_count / kPagesPerClaim;
  if (work.table != nullptr && crowded) return {.block = work.page};
  return shape;
}

void PageFeed::PickForWriting(Pick& pick) {
  ++own_generation_;
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    pick.page = random_.Below(work_->page_count);
    pick.generation = Generation{own_generation_};
    if (work_->table == nullptr) return;
    const std::optional<Generation> claimed = work_->table->Claim(pick.page);
    if (!claimed) continue;
    pick.generation = *claimed;
    return;
  }
  pick.found = false;
}

void PageFeed::PickPage(Pick& pick) {
  pick = {.read = work_->read_share > 0 && random_.Chance(work_->read_share)};
  if (pick.read) {
    pick.page = random_.Below(work_->page_count);
  } else {
    PickForWriting(pick);
  }
}

DataFeed::Make PageFeed::Make() {
  return [this](std::size_t slot, MutableView into) {
    Pick& pick = picks_[slot];
    PickPage(pick);
    const Offset at(pick.page * work_->page.count());
    if (!pick.read && pick.found) work_->data->Fill(work_->file, at, pick.generation, into);
    return std::optional(work_->page);
  };
}

void PageFeed::Release(const Pick& pick) {
  if (!pick.read && pick.found && work_->table != nullptr) work_->table->Release(pick.page);
}

Task<Result<void>> RunPages(Client* client, const PageWork* work, PageFeed* feed, DataFeed* data) {
  if (work->read_share >= 1) return ReadPages(client, work);
  LABRACK_CHECK(feed != nullptr && data != nullptr);
  return MixPages(client, work, feed, data);
}

}  // namespace labrack::workload
