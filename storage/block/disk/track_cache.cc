#include "storage/block/disk/track_cache.h"

#include <algorithm>

namespace labrack::block {

TrackCache::TrackCache(std::uint32_t segments, Bytes segment_size, Bytes capacity)
    : segments_(segments), segment_size_(segment_size), capacity_(capacity) {}

void TrackCache::Use(Segment& segment, Offset at) {
  segment.used = ++uses_;
  segment.limit = std::max(segment.limit, at + segment_size_);
  segment.limit = std::min(segment.limit, Offset(capacity_.count()));
  if (segment.limit - segment.begin > segment_size_) segment.begin = segment.limit - segment_size_;
}

TrackCache::Segment* TrackCache::Find(Offset at, Bytes length) {
  for (Segment& segment : segments_) {
    if (!segment.Holds(at, length)) continue;
    Use(segment, at);
    return &segment;
  }
  return nullptr;
}

TrackCache::Segment* TrackCache::Insert(Offset at, Bytes length) {
  if (segments_.empty() || length > segment_size_) return nullptr;
  for (Segment& segment : segments_) {
    if (at < segment.begin || at > segment.end || segment.begin == segment.end) continue;
    segment.end = std::max(segment.end, at + length);
    ++segment.going_on;
    Use(segment, at);
    return &segment;
  }
  Segment& oldest = *std::ranges::min_element(segments_, {}, &Segment::used);
  oldest = {};
  oldest.begin = at;
  oldest.end = at + length;
  Use(oldest, at);
  return &oldest;
}

// A segment is one piece: what lies behind a hole in it is given up.
void TrackCache::Invalidate(Offset at, Bytes length) {
  for (Segment& segment : segments_) {
    if (at >= segment.limit || at + length <= segment.begin) continue;
    segment.end = std::clamp(at, segment.begin, segment.end);
    segment.limit = segment.end;
    if (segment.begin == segment.end) segment = {};
  }
}

void TrackCache::Clear() {
  for (Segment& segment : segments_) segment = {};
}

}  // namespace labrack::block
