#include "agent/session/spool_tail.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace labrack::session {
namespace {

// A record whose payload is no message of ours has passed its CRC: a worker of another version
// wrote it.
v1::EventRecord ToEvent(const spool::Record& record) {
  v1::EventRecord event;
  if (!event.ParseFromString(record.payload)) {
    event.Clear();
    event.set_log(fmt::format("SPOOL_UNKNOWN: record {} is no event", record.seq));
  }
  event.set_seq(record.seq);
  event.set_mono_ns(record.mono_ns);
  return event;
}

}  // namespace

SpoolTail::SpoolTail(std::filesystem::path directory, spool::Identity identity)
    : directory_(std::move(directory)), identity_(std::move(identity)) {
  looker_ = std::make_unique<spool::SpoolReader>(directory_, identity_);
  Rewind();
}

void SpoolTail::Rewind() {
  sender_ = std::make_unique<spool::SpoolReader>(directory_, identity_);
  pending_.reset();
  behind_gap_.reset();
  read_seq_ = 0;
}

Result<void> SpoolTail::Look() {
  while (!sealed_) {
    Result<std::optional<spool::Record>> record = looker_->Next();
    if (!record) return std::unexpected(record.error());
    if (!*record) break;
    looked_seq_ = (*record)->seq;
    if (observer_) observer_(ToEvent(**record));
  }
  sealed_ = looker_->sealed();
  return {};
}

Result<std::optional<v1::EventRecord>> SpoolTail::Read() {
  if (!behind_gap_) {
    Result<std::optional<spool::Record>> record = sender_->Next();
    if (!record) return std::unexpected(record.error());
    if (!*record) return std::nullopt;
    behind_gap_ = ToEvent(**record);
  }
  ++read_seq_;
  if (behind_gap_->seq() == read_seq_) return std::exchange(behind_gap_, std::nullopt);
  v1::EventRecord note;
  note.set_seq(read_seq_);
  note.set_mono_ns(behind_gap_->mono_ns());
  note.set_log(fmt::format("SPOOL_CORRUPT: record {} does not read back as written", read_seq_));
  return note;
}

Result<std::optional<v1::Events>> SpoolTail::Next(const Finish& finish) {
  v1::Events batch;
  std::size_t size = 0;
  for (;;) {
    if (!pending_) {
      Result<std::optional<v1::EventRecord>> read = Read();
      if (!read) return std::unexpected(read.error());
      if (!*read) break;
      pending_ = *std::move(read);
    }
    if (pending_->seq() <= acknowledged_) {
      pending_.reset();
      continue;
    }
    if (pending_->has_result()) {
      // Not before the spool is sealed: until then it is not durable.
      if (!sealed_ || !finish(*pending_->mutable_result())) break;
    }
    const std::size_t more = pending_->ByteSizeLong();
    if (batch.records_size() > 0 && size + more > kBatchMax.size()) break;
    size += more;
    *batch.add_records() = *std::exchange(pending_, std::nullopt);
  }
  if (batch.records().empty()) return std::nullopt;
  batch.set_assignment_id(identity_.assignment_id);
  batch.set_epoch(identity_.epoch);
  return batch;
}

void SpoolTail::Acknowledge(std::uint64_t through_seq) {
  acknowledged_ = std::max(acknowledged_, through_seq);
}

}  // namespace labrack::session
