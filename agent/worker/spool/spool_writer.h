// SpoolWriter: appends records to a trial's spool. One writer at a time (the trial's lock sees to
// that): the worker, or, when the worker has died, the agent that ends its spool.
//
// Space: a preallocated ballast file is released when the disk is full, so that state records and
// the result always fit; details are dropped and counted until there is room for a ballast again,
// since they would eat what was set free for the others. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "agent/worker/spool/record.h"
#include "storage/base/descriptor.h"

namespace labrack::spool {

struct Limits {
  Bytes segment = 8_MiB;  // a segment is closed when it has reached this
  Bytes trial = 2_GiB;    // beyond it details are dropped, as on a full disk
  Bytes ballast = 2_MiB;  // two largest records
};

enum class Durability {
  kNow,       // durable on return
  kWithNext,  // with the next record that is, or with Seal()
};

class SpoolWriter {
 public:
  // A new spool in `directory`, which is made. Errors: kAlreadyExists when it holds segments.
  static Result<SpoolWriter> Create(std::filesystem::path directory, Identity identity,
                                    Limits limits);
  // Goes on behind the last whole record of a spool whose writer has died; makes one where there is
  // none. Errors: kAlreadyExists when it is sealed.
  static Result<SpoolWriter> Resume(std::filesystem::path directory, Identity identity,
                                    Limits limits);

  // Number that the next record will get: it stands in the payload too.
  std::uint64_t next_seq() const { return next_seq_; }
  // Errors: kNoSpace when a detail was dropped (nothing was written) or when even the ballast did
  // not help; kInvalidArgument for a payload above kPayloadMax; kIo. After a sync that failed every
  // call fails: the next sync may report success for what the first one has lost.
  Result<void> Append(RecordType type, Durability durability, std::int64_t mono_ns,
                      std::string_view payload);
  // Footer, fsync of file and directory. Nothing can be appended afterwards.
  Result<void> Seal();

  Bytes size() const { return size_; }
  std::uint64_t dropped_count() const { return dropped_count_; }

 private:
  SpoolWriter(std::filesystem::path directory, Identity identity, Limits limits)
      : directory_(std::move(directory)), identity_(std::move(identity)), limits_(limits) {}

  Result<void> OpenDirectory();
  bool MakeBallast();     // false: there is no room
  bool ReleaseBallast();  // false: there is none
  Result<void> StartSegment();
  Result<void> CloseSegment(bool final_segment);
  // All of `data` or nothing. Releases the ballast when `must_fit`.
  Result<void> Write(std::string_view data, bool must_fit);
  Result<void> TryWrite(std::string_view data);
  Result<void> SyncData();
  Result<void> SyncDirectory();
  // Error: what could not be synced.
  Result<void> Usable() const;
  // Writes the open segment's bytes again: a sync that failed for a dead writer has left pages that
  // only memory has, and no later sync would say so.
  Result<void> Rewrite(std::uint64_t length);

  std::filesystem::path directory_;
  Identity identity_;
  Limits limits_;
  Descriptor directory_file_;
  Descriptor file_;
  std::uint32_t segment_ = 0;
  std::uint64_t segment_size_ = 0;
  std::uint64_t segment_count_ = 0;
  std::uint64_t next_seq_ = 1;
  Bytes size_;
  std::uint64_t dropped_count_ = 0;
  bool has_ballast_ = false;
  std::optional<Error> failure_;
};

}  // namespace labrack::spool
