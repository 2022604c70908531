// StateDatabase: the record of a set (records.h), kept on all its disks, so that its volumes
// assemble from disks in any order and a stale disk never wins.
//
//   to run:   a record counts once half of the disks that had a voice hold it
//   to start: more than half of those with a voice, as the newest record says, must be here and
//             promise to take no record of an earlier start
//
// Any two such groups have a disk in common. So whoever starts sees the newest record that
// counted, and what an earlier start has left on few disks cannot count any more. A generation is
// the number of the start (the epoch: one more than any that was promised) and of the record within
// it, so two records that differ never have the same one. While it is not known whether a record
// counts that takes or gives voices, those of before and of after it must both agree. A disk that
// does not take an update loses its voice in that same update. Half and half is refused for
// writing: the other half may have gone on.
//
//   A B C   generation 7, voices A B C
//   A B     generation 8: C did not take it; voices A B
//   B       generation 9: voices B                       ... B alone starts; A alone does not (1 of
//                                                        2), nor do A and C (A's record: 1 of 2)
//
// Sources: Solaris Volume Manager's replicas (run with half, boot with half plus one); Lamport,
// "The Part-Time Parliament", 1998 (epochs and promises); Ongaro and Ousterhout, "In Search of an
// Understandable Consensus Algorithm", 2014 (voices of before and after).
// Lives on one reactor; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"
#include "storage/runtime/sync.h"
#include "storage/volume/records.h"

namespace labrack::volume {

class StateDatabase {
 public:
  using Change = std::function<void(SetRecord&)>;

  // Of a new set, whose `disks` stand in the order of the record; nothing is written yet.
  static std::unique_ptr<StateDatabase> Make(runtime::Reactor& reactor,
                                             std::vector<block::BlockDevice*> disks,
                                             SetRecord record);
  // Takes away what its disks have carried, and writes its first generation to all of them. Errors:
  // those of the disks; then the set must be made again.
  Task<Result<void>> Erase();
  Task<Result<void>> WriteFirst();

  // Reads the replicas of disks in any order; changes nothing. Errors:
  //   kNotFound         a disk that carries no record
  //   kCorrupt          a disk whose records do not check; two histories of one set
  //   kInvalidArgument  disks of two sets, or of another set than `set_id`; one disk twice; a disk
  //                     that has left the set
  static Task<Result<std::unique_ptr<StateDatabase>>> Find(runtime::Reactor* reactor,
                                                           std::vector<block::BlockDevice*> disks,
                                                           std::optional<std::uint64_t> set_id);

  const SetRecord& record() const { return record_; }
  // nullptr: it is missing.
  block::BlockDevice* disk(std::uint32_t number) const { return replicas_[number].device; }

  // kUnavailable unless enough disks are here to start writing, or to read with `read_only`.
  Result<void> CheckVoices(bool read_only) const;

  // Starts: takes the voice of the disks that are missing, gives one to those that are here, and
  // applies `change`. Once, before any Update. Errors as Update's.
  Task<Result<void>> Start(Change change);
  // Changes the record, durably. Errors: kUnavailable when too few disks took it; then the set can
  // not be changed any more until it is assembled anew.
  Task<Result<void>> Update(block::IoContext io, Change change);
  // A new disk, of which nothing is kept; gives its number. Errors: kAlreadyExists (it belongs to a
  // set), kExhausted (kDisksMax), those of the disk and of Update.
  Task<Result<std::uint32_t>> AddDisk(block::IoContext io, block::BlockDevice* device);
  // Fails with kAlreadyExists when a disk carries a record, whole or not; `given` is its name.
  static Task<Result<void>> CheckBlank(block::BlockDevice* disk, std::size_t given);

 private:
  struct Place {
    block::BlockDevice* device = nullptr;  // nullptr: it is missing
    std::size_t newest_slot = kSlotCount - 1;
    SetRecord record = {};  // what it holds
  };

  explicit StateDatabase(runtime::Reactor& reactor) : updating_(reactor) {}

  Result<void> CheckVoicesOf(bool DiskEntry::* voice, bool read_only) const;
  Result<void> HalfHold(const std::vector<bool>& holds) const;
  Task<Result<void>> Promise();
  Task<Result<void>> Commit(block::IoContext io, SetRecord next);
  Task<Result<void>> Propose(block::IoContext io, SetRecord next);
  Task<Result<void>> WriteToVoices(block::IoContext io, SetRecord* next, std::vector<bool>* holds);
  static Task<Result<void>> Wipe(block::IoContext io, block::BlockDevice* disk);
  Task<Result<void>> WriteReplica(block::IoContext io, const SetRecord* record,
                                  std::uint32_t number);

  runtime::Mutex updating_;
  SetRecord record_;
  std::vector<Place> replicas_;   // by the disk's number
  std::uint64_t epoch_ = 1;       // of this start; before it, the newest that was promised
  std::uint64_t generation_ = 0;  // the newest that was tried
  bool broken_ = false;
};

}  // namespace labrack::volume
