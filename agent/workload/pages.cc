#include "agent/workload/pages.h"

#include <tuple>

#include <fmt/format.h>

namespace labrack::workload {
namespace {

using runtime::Task;

// When so many pages in a row are being written by others, the file is small for its clients, and
// the client waits a little instead of spinning.
constexpr int kDrawsMax = 64;

std::string Where(const PageWork& work, Offset at) {
  return fmt::format("{} at byte {}", work.name, at.value());
}

struct Pick {
  std::uint64_t page = 0;
  Generation generation;
  bool found = false;
};

Pick PickForWriting(const PageWork& work, Random& random, std::uint32_t own_generation) {
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    const std::uint64_t page = random.Below(work.page_count);
    if (work.table == nullptr) return {page, Generation{own_generation}, true};
    if (const std::optional<Generation> claimed = work.table->Claim(page)) {
      return {page, *claimed, true};
    }
  }
  return {};
}

}  // namespace

// The page is chosen and its data made before the operation begins: neither belongs to its time.
// (That includes the schedule of an open loop, hence before Pace.)
Task<Result<void>> RunPages(Client* client, const PageWork* work) {
  AlignedBuffer buffer(work->page);
  const MutableView view = buffer.view();
  work->data->Fill(work->file, Offset(0), Generation{0}, view);
  std::uint32_t own_generation = 0;
  while (true) {
    const bool read = work->read_share > 0 && client->random().Chance(work->read_share);
    Pick pick;
    if (read) {
      pick.page = client->random().Below(work->page_count);
    } else {
      pick = PickForWriting(*work, client->random(), ++own_generation);
      if (!pick.found) {
        const bool more = co_await client->Rest();
        if (!more) break;
        continue;
      }
    }
    const Offset at(pick.page * work->page.count());
    if (!read) {
      const TimePoint from = client->Now();
      work->data->Fill(work->file, at, pick.generation, view);
      // Where it waits for its schedule anyway, the stack does not wait for the data.
      if (!client->paced()) client->Made(from);
    }

    bool more = true;
    if (client->paced()) more = co_await client->Pace();
    if (!more || !client->Begin()) {
      if (!read && work->table != nullptr) work->table->Release(pick.page);
      break;
    }
    if (read) {
      Result<void> done = co_await work->device->Read({}, at, view);
      if (!done) co_return client->Failed(work->read_kind, Where(*work, at), done.error());
      client->End(work->read_kind, work->page);
    } else {
      Result<void> done = co_await work->device->Write({}, at, view);
      if (!done) co_return client->Failed(work->write_kind, Where(*work, at), done.error());
      client->End(work->write_kind, work->page);
      if (work->table != nullptr) work->table->Acknowledge(pick.page, pick.generation);
    }
  }
  co_return Result<void>();
}

}  // namespace labrack::workload
