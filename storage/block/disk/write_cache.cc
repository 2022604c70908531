#include "storage/block/disk/write_cache.h"

#include <algorithm>
#include <iterator>

#include "storage/base/check.h"

namespace labrack::block {

// A newer write of the same place takes the older one's memory.
void WriteCache::Add(Offset at, Bytes length, DiskImage::WriteId id) {
  Write& write = writes_[at];
  if (length > write.length) {
    bytes_ += length - write.length;
    write.length = length;
  }
  write.ids.push_back(id);
}

bool WriteCache::Holds(Offset at, Bytes length) const {
  const auto after = writes_.upper_bound(at);
  if (after == writes_.begin()) return false;
  const auto& [begin, write] = *std::prev(after);
  return at + length <= begin + write.length;
}

Offset WriteCache::NextPlace() const {
  LABRACK_CHECK(!empty());
  const auto next = writes_.lower_bound(cursor_);
  return next == writes_.end() ? writes_.begin()->first : next->first;
}

WriteCache::Run WriteCache::TakeRun(Bytes length_max) {
  auto write = writes_.find(NextPlace());
  Run run{.at = write->first, .length = Bytes(0), .held = Bytes(0), .ids = {}};
  Offset end = run.at;
  while (write != writes_.end() && write->first <= end) {
    const Offset write_end = std::max(end, write->first + write->second.length);
    if (!run.ids.empty() && write_end - run.at > length_max) break;
    end = write_end;
    run.held += write->second.length;
    run.ids.insert(run.ids.end(), write->second.ids.begin(), write->second.ids.end());
    write = writes_.erase(write);
  }
  run.length = end - run.at;
  bytes_ -= run.held;
  cursor_ = end;
  std::ranges::sort(run.ids);
  return run;
}

void WriteCache::Clear() {
  writes_.clear();
  bytes_ = Bytes(0);
}

}  // namespace labrack::block
