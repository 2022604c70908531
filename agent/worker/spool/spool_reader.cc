#include "agent/worker/spool/spool_reader.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace labrack::spool {
namespace {

// Behind damage a record is believed only when its number is the next ones': random bytes never
// are.
constexpr std::uint64_t kSeqGapMax = 1 << 20;
// Most bytes looked at per Load(): the largest record, with room.
constexpr std::size_t kLoadMax = 4 * kPayloadMax.size();

}  // namespace

Result<bool> SpoolReader::OpenSegment() {
  Result<std::vector<std::uint32_t>> numbers = ListSegments(directory_);
  if (!numbers) {
    if (numbers.error().code() == Errc::kNotFound) return false;
    return std::unexpected(numbers.error());
  }
  const auto next = std::upper_bound(numbers->begin(), numbers->end(), place_.segment);
  if (next == numbers->end()) return false;
  const std::filesystem::path path = SegmentPath(directory_, *next);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FailErrno("open", path.string());
  file_ = std::move(file);
  place_ = Place{.segment = *next};
  buffer_.clear();
  buffer_at_ = 0;
  segment_closed_ = false;
  segment_done_ = false;
  return true;
}

// A segment whose header does not read is made anew under its name by whoever goes on in a dead
// writer's place, or was put aside with its whole directory.
Result<void> SpoolReader::OpenAgain() {
  const std::filesystem::path path = SegmentPath(directory_, place_.segment);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && errno != ENOENT) return FailErrno("open", path.string());
  if (!file.valid()) --place_.segment;
  file_ = std::move(file);
  buffer_.clear();
  buffer_at_ = 0;
  return {};
}

Result<void> SpoolReader::Load() {
  // From the last whole record on, never behind a piece that was seen before: a record for which
  // the disk had no room is cut off again, and another one takes its place.
  buffer_.clear();
  buffer_at_ = place_.offset;
  while (buffer_.size() < kLoadMax) {
    const std::size_t had = buffer_.size();
    constexpr std::size_t kChunk = 64 << 10;
    buffer_.resize(had + kChunk);
    const ssize_t got =
        pread(file_.get(), buffer_.data() + had, kChunk, static_cast<off_t>(buffer_at_ + had));
    if (got < 0 && errno == EINTR) {
      buffer_.resize(had);
      continue;
    }
    buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) return FailErrno("read", SegmentPath(directory_, place_.segment).string());
    if (got == 0) break;
  }
  return {};
}

Result<bool> SpoolReader::IsClosed() {
  Result<std::vector<std::uint32_t>> numbers = ListSegments(directory_);
  if (!numbers) return std::unexpected(numbers.error());
  if (!numbers->empty() && numbers->back() > place_.segment) return true;
  struct stat status{};
  if (fstat(file_.get(), &status) != 0) return FailErrno("stat", directory_.string());
  constexpr std::size_t kFooterLength = kRecordHead + kRecordFixed + kFooterPayload;
  if (static_cast<std::size_t>(status.st_size) < kFooterLength) return false;
  std::string tail(kFooterLength, '\0');
  const off_t at = status.st_size - static_cast<off_t>(kFooterLength);
  if (pread(file_.get(), tail.data(), tail.size(), at) != static_cast<ssize_t>(tail.size())) {
    return false;
  }
  const ParsedRecord footer = ParseRecord(tail);
  return footer.state == ParseState::kRecord && footer.record.type == RecordType::kFooter;
}

std::optional<std::size_t> SpoolReader::FindRecord(std::size_t from) const {
  const std::string_view data = buffer_;
  for (std::size_t at = from; at + kRecordHead + kRecordFixed <= data.size(); ++at) {
    const ParsedRecord parsed = ParseRecord(data.substr(at));
    if (parsed.state != ParseState::kRecord) continue;
    if (parsed.record.seq > last_seq_ && parsed.record.seq - last_seq_ <= kSeqGapMax) return at;
    if (parsed.record.type == RecordType::kFooter) return at;
  }
  return std::nullopt;
}

void SpoolReader::AddDamage(std::uint64_t offset, std::uint64_t length) {
  if (damage_.size() < kDamageKeptMax) {
    damage_.push_back({SegmentPath(directory_, place_.segment), offset, length});
  }
}

Result<bool> SpoolReader::HandleUnreadable() {
  if (!segment_closed_) {
    Result<bool> closed = IsClosed();
    if (!closed || !*closed) return closed;
    // It may have been finished since it was last looked at: look again before anything is skipped.
    segment_closed_ = true;
    if (Result<void> loaded = Load(); !loaded) return std::unexpected(loaded.error());
    return true;
  }
  const std::optional<std::size_t> next = FindRecord(1);
  const std::size_t skipped = next.value_or(buffer_.size());
  if (skipped > 0) AddDamage(place_.offset, skipped);
  place_.offset += skipped;
  buffer_.erase(0, skipped);
  buffer_at_ = place_.offset;
  // Nothing readable in more than one record's length: the rest of the segment is given up.
  if (!next) segment_done_ = true;
  return true;
}

Result<bool> SpoolReader::ReadHeader() {
  if (Result<void> loaded = Load(); !loaded) return std::unexpected(loaded.error());
  const std::optional<ParsedHeader> parsed = ParseHeader(buffer_);
  if (!parsed) return false;
  if (parsed->header.identity != identity_) {
    return Fail(Errc::kCorrupt, SegmentPath(directory_, place_.segment).string(),
                "spool of " + parsed->header.identity.assignment_id + ", epoch " +
                    std::to_string(parsed->header.identity.epoch) + ", not of " +
                    identity_.assignment_id + ", epoch " + std::to_string(identity_.epoch));
  }
  place_.offset = parsed->length;
  return true;
}

void SpoolReader::TakeFooter(const Record& record) {
  segment_done_ = true;
  const std::optional<Footer> footer = ParseFooterPayload(record.payload);
  if (footer && footer->final_segment) sealed_ = true;
}

Result<ParsedRecord> SpoolReader::ParseNext() {
  std::string_view data = buffer_;
  data.remove_prefix(static_cast<std::size_t>(place_.offset - buffer_at_));
  ParsedRecord parsed = ParseRecord(data);
  if (parsed.state == ParseState::kRecord) return parsed;
  if (Result<void> loaded = Load(); !loaded) return std::unexpected(loaded.error());
  return ParseRecord(buffer_);
}

Result<std::optional<Record>> SpoolReader::Next() {
  if (file_.valid() && place_.offset == 0 && !segment_done_) {
    if (Result<void> opened = OpenAgain(); !opened) return std::unexpected(opened.error());
  }
  while (!sealed_) {
    if (!file_.valid() || segment_done_) {
      Result<bool> opened = OpenSegment();
      if (!opened) return std::unexpected(opened.error());
      if (!*opened) return std::nullopt;
    }
    ParsedRecord parsed;
    if (place_.offset == 0) {
      Result<bool> header = ReadHeader();
      if (!header) return std::unexpected(header.error());
      if (*header) continue;
    } else {
      Result<ParsedRecord> next = ParseNext();
      if (!next) return std::unexpected(next.error());
      parsed = *std::move(next);
    }
    if (parsed.state != ParseState::kRecord) {
      Result<bool> handled = HandleUnreadable();
      if (!handled) return std::unexpected(handled.error());
      if (!*handled) return std::nullopt;
      continue;
    }
    place_.offset += parsed.length;
    if (parsed.record.type == RecordType::kFooter) {
      TakeFooter(parsed.record);
      continue;
    }
    ++place_.segment_count;
    if (parsed.record.seq <= last_seq_) continue;
    last_seq_ = parsed.record.seq;
    return std::move(parsed.record);
  }
  return std::nullopt;
}

}  // namespace labrack::spool
