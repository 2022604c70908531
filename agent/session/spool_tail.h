// SpoolTail: a trial's spool as Events for the controller. What was sent is kept by number only:
// after a lost connection it is read again. A record that the spool has lost is replaced by a note,
// so that numbers have no gap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "agent/worker/spool/spool_reader.h"
#include "labrack/v1/fleet.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/result.h"

namespace labrack::session {

// A batch is closed when it has reached this; a larger record goes alone.
constexpr Bytes kBatchMax = 256_KiB;

class SpoolTail {
 public:
  SpoolTail(std::filesystem::path directory, spool::Identity identity);

  // Called with each record when it is read for the first time, for the exporter and for the state
  // of the trial.
  using Observer = std::function<void(const v1::EventRecord&)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // Reads what is new, without sending it. Errors as of SpoolReader.
  Result<void> Look();
  // The next batch; nullopt: nothing to send. `finish` fills in what only the agent knows of a
  // result; while it gives false, the result is held back.
  using Finish = std::function<bool(v1::AssignmentResult&)>;
  Result<std::optional<v1::Events>> Next(const Finish& finish);

  // Everything up to `through_seq` is durable at the controller.
  void Acknowledge(std::uint64_t through_seq);
  // A new connection: what is not acknowledged is sent again.
  void Rewind();

  std::uint64_t last_seq() const { return looked_seq_; }
  std::uint64_t acknowledged() const { return acknowledged_; }
  // The result has been read and its spool is sealed.
  bool sealed() const { return sealed_; }
  bool all_acknowledged() const { return sealed_ && acknowledged_ >= looked_seq_; }

 private:
  // The next record to send; fills gaps.
  Result<std::optional<v1::EventRecord>> Read();

  std::filesystem::path directory_;
  spool::Identity identity_;
  Observer observer_;
  std::unique_ptr<spool::SpoolReader> looker_;  // ahead: for state and metrics
  std::unique_ptr<spool::SpoolReader> sender_;
  std::optional<v1::EventRecord> pending_;  // read, not sent yet
  std::optional<v1::EventRecord> behind_gap_;
  std::uint64_t read_seq_ = 0;  // by the sender, gaps included
  std::uint64_t looked_seq_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool sealed_ = false;
};

}  // namespace labrack::session
