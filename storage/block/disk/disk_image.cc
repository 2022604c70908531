#include "storage/block/disk/disk_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/check.h"

namespace labrack::block {
namespace {

constexpr std::size_t kSpareMax = 1024;

// Calls `use(page number, offset within the page, offset within the range, length)` for each page
// that [at, at + length) touches.
template <typename Use>
void ForEachPage(Offset at, std::size_t length, const Use& use) {
  std::size_t done = 0;
  while (done < length) {
    const std::uint64_t position = at.value() + done;
    const std::size_t within = position % SparseBytes::kPage;
    const std::size_t here = std::min(length - done, SparseBytes::kPage - within);
    use(position / SparseBytes::kPage, within, done, here);
    done += here;
  }
}

// Indexes of the pending writes that survive, in the order in which they were begun.
std::vector<std::size_t> Survivors(CutPolicy policy, std::size_t count, Random& random) {
  std::vector<std::size_t> kept;
  const std::size_t one = count > 0 ? random.Below(count) : 0;
  const std::size_t prefix = random.Below(count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const bool drawn = random.Chance(0.5);
    bool keep = false;
    switch (policy) {
      case CutPolicy::kKeepAll:
        keep = true;
        break;
      case CutPolicy::kDropAll:
        break;
      case CutPolicy::kPrefix:
        keep = i < prefix;
        break;
      case CutPolicy::kRandomSubset:
        keep = drawn;
        break;
      case CutPolicy::kSingleMissing:
        keep = i != one;
        break;
      case CutPolicy::kSingleKept:
        keep = i == one;
        break;
    }
    if (keep) kept.push_back(i);
  }
  return kept;
}

}  // namespace

void SparseBytes::Read(Offset at, MutableView into) const {
  ForEachPage(at, into.size(),
              [&](std::uint64_t number, std::size_t within, std::size_t done, std::size_t here) {
                const auto group = groups_.find(number / kGroup);
                const std::byte* page =
                    group == groups_.end() ? nullptr : (*group->second)[number % kGroup].get();
                if (page == nullptr) {
                  std::memset(into.data() + done, 0, here);
                } else {
                  std::memcpy(into.data() + done, page + within, here);
                }
              });
}

void SparseBytes::Write(Offset at, ConstView from) {
  ForEachPage(at, from.size(),
              [&](std::uint64_t number, std::size_t within, std::size_t done, std::size_t here) {
                std::unique_ptr<Group>& group = groups_[number / kGroup];
                if (group == nullptr) group = std::make_unique<Group>();
                Page& page = (*group)[number % kGroup];
                if (page == nullptr) {
                  page = here == kPage ? std::make_unique_for_overwrite<std::byte[]>(kPage)
                                       : std::make_unique<std::byte[]>(kPage);  // zeros
                }
                std::memcpy(page.get() + within, from.data() + done, here);
              });
}

SparseBytes SparseBytes::Copy() const {
  SparseBytes copy;
  for (const auto& [number, group] : groups_) {
    auto copied = std::make_unique<Group>();
    for (std::size_t i = 0; i < kGroup; ++i) {
      const Page& page = (*group)[i];
      if (page == nullptr) continue;
      (*copied)[i] = std::make_unique_for_overwrite<std::byte[]>(kPage);
      std::memcpy((*copied)[i].get(), page.get(), kPage);
    }
    copy.groups_.emplace(number, std::move(copied));
  }
  return copy;
}

std::size_t SparseBytes::page_count() const {
  std::size_t count = 0;
  for (const auto& [number, group] : groups_) {
    for (const Page& page : *group) count += page != nullptr;
  }
  return count;
}

DiskImage::WriteId DiskImage::Write(Offset at, ConstView from) {
  current_.Write(at, from);
  longest_ = std::max(longest_, Bytes(from.size()));
  const WriteId id = next_id_++;
  if (spare_pending_.empty()) {
    pending_.emplace_hint(pending_.end(), id, Pending{at, {from.begin(), from.end()}});
    places_.emplace(at, id);
    return id;
  }
  PendingMap::node_type write = std::move(spare_pending_.back());
  spare_pending_.pop_back();
  write.key() = id;
  write.mapped().at = at;
  write.mapped().bytes.assign(from.begin(), from.end());
  pending_.insert(pending_.end(), std::move(write));
  PlaceMap::node_type place = std::move(spare_places_.back());
  spare_places_.pop_back();
  place.key() = at;
  place.mapped() = id;
  places_.insert(std::move(place));
  return id;
}

void DiskImage::Persist(WriteId id) {
  const auto found = pending_.find(id);
  LABRACK_CHECK(found != pending_.end());
  const Pending& write = found->second;
  durable_.Write(write.at, write.bytes);
  Overwrite(write, id);
  auto place = places_.find(write.at);
  while (place->second != id) ++place;
  if (spare_pending_.size() < kSpareMax) {
    spare_places_.push_back(places_.extract(place));
    spare_pending_.push_back(pending_.extract(found));
  } else {
    places_.erase(place);
    pending_.erase(found);
  }
}

// An earlier write of the same blocks that is pending still would, if a cut kept it, put old bytes
// over newer ones. No disk does that: what it has overwritten in its cache is gone.
void DiskImage::Overwrite(const Pending& write, WriteId id) {
  const std::uint64_t begin = write.at.value();
  const std::uint64_t end = begin + write.bytes.size();
  const Offset first(begin < longest_.count() ? 0 : begin - longest_.count());
  for (auto place = places_.lower_bound(first); place != places_.end(); ++place) {
    if (place->first.value() >= end) break;
    if (place->second >= id) continue;
    Pending& other = pending_.at(place->second);
    const std::uint64_t other_begin = other.at.value();
    const std::uint64_t from = std::max(begin, other_begin);
    const std::uint64_t to = std::min(end, other_begin + other.bytes.size());
    if (from >= to) continue;
    std::copy_n(write.bytes.begin() + static_cast<std::ptrdiff_t>(from - begin), to - from,
                other.bytes.begin() + static_cast<std::ptrdiff_t>(from - other_begin));
  }
}

void DiskImage::PersistAll() {
  for (const auto& [id, write] : pending_) durable_.Write(write.at, write.bytes);
  pending_.clear();
  places_.clear();
}

void DiskImage::Keep(const Pending& write, const CutOptions& options, Random& random) {
  const bool torn = random.Chance(options.tear_chance);
  const std::size_t unit = options.unit.size();
  for (std::size_t done = 0; done < write.bytes.size(); done += unit) {
    const std::size_t here = std::min(unit, write.bytes.size() - done);
    const bool arrives = !torn || random.Chance(0.5);
    if (arrives) {
      durable_.Write(write.at + Bytes(done), ConstView(write.bytes).subspan(done, here));
    }
  }
}

void DiskImage::Cut(const CutOptions& options, Random& random) {
  std::vector<const Pending*> begun;
  for (const auto& [id, write] : pending_) begun.push_back(&write);
  std::vector<std::size_t> kept = Survivors(options.policy, begun.size(), random);
  if (options.reorder) {
    for (std::size_t i = kept.size(); i > 1; --i) std::swap(kept[i - 1], kept[random.Below(i)]);
  }
  for (const std::size_t index : kept) Keep(*begun[index], options, random);
  pending_.clear();
  places_.clear();
  current_ = durable_.Copy();
}

Bytes DiskImage::pending_bytes() const {
  Bytes sum;
  for (const auto& [id, write] : pending_) sum += Bytes(write.bytes.size());
  return sum;
}

}  // namespace labrack::block
