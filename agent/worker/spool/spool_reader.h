// SpoolReader: the records of a spool in order, also while it is being written. It never changes a
// file. A record that cannot be read is reported as Damage and skipped (the next record's number
// shows the gap); at the end of an open segment it is a torn tail: nothing more yet. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agent/worker/spool/record.h"
#include "storage/base/descriptor.h"

namespace labrack::spool {

// A range of a segment that does not read back as written.
struct Damage {
  std::filesystem::path segment;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

class SpoolReader {
 public:
  SpoolReader(std::filesystem::path directory, Identity identity)
      : directory_(std::move(directory)), identity_(std::move(identity)) {}

  // The next record; nullopt: none yet, or none ever when sealed(). Errors: kCorrupt for a spool of
  // another assignment or epoch, kIo and kPermissionDenied of the host. A directory that is not
  // there is empty.
  Result<std::optional<Record>> Next();

  // The final footer was read: there is nothing behind what Next() gave.
  bool sealed() const { return sealed_; }
  std::uint64_t last_seq() const { return last_seq_; }
  const std::vector<Damage>& damage() const { return damage_; }
  static constexpr std::size_t kDamageKeptMax = 100;

  // Where the next record will begin, for the writer that goes on after a crash. Number 0: no
  // segment yet.
  struct Place {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;         // 0: the segment has no readable header
    std::uint64_t segment_count = 0;  // records read in this segment
  };
  Place place() const { return place_; }
  // The segment at place() has its footer: records to come are in the next one.
  bool at_segment_end() const { return segment_done_; }

 private:
  Result<bool> OpenSegment();  // false: there is none yet
  Result<void> OpenAgain();    // the same one
  Result<void> Load();         // what the file holds behind place_.offset
  Result<bool> IsClosed();     // a later segment exists, or the file ends in a footer
  std::optional<std::size_t> FindRecord(std::size_t from) const;
  void AddDamage(std::uint64_t offset, std::uint64_t length);
  Result<bool> ReadHeader();  // false: it is not readable
  Result<ParsedRecord> ParseNext();
  Result<bool> HandleUnreadable();  // false: it is a torn tail
  void TakeFooter(const Record& record);

  std::filesystem::path directory_;
  Identity identity_;
  Descriptor file_;
  Place place_;
  std::string buffer_;  // from buffer_at_ on
  std::uint64_t buffer_at_ = 0;
  std::uint64_t last_seq_ = 0;
  bool segment_closed_ = false;  // nobody writes it any more: what is unreadable is damage
  bool segment_done_ = false;
  bool sealed_ = false;
  std::vector<Damage> damage_;
};

}  // namespace labrack::spool
