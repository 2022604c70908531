// DiskImage: what a simulated disk holds, and what of it would survive a power cut.
//
//   Write --> current (what reads see)          --Persist--> durable
//        \--> pending: whole writes, in order --/               |
//                        Cut(): some of pending, torn, in any order, and nothing else
//
// A write is pending from its beginning until Persist names it: in a disk without a volatile cache
// when it completes, otherwise when a later flush does. Memory is taken only for what was written;
// the rest reads as zeros.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/base/random.h"

namespace labrack::block {

class SparseBytes {
 public:
  static constexpr std::size_t kPage = 4096;

  void Read(Offset at, MutableView into) const;
  void Write(Offset at, ConstView from);
  SparseBytes Copy() const;
  std::size_t page_count() const;

 private:
  using Page = std::unique_ptr<std::byte[]>;
  // Neighbours together, so that the map is small and a look-up short.
  static constexpr std::size_t kGroup = 512;
  using Group = std::array<Page, kGroup>;

  std::map<std::uint64_t, std::unique_ptr<Group>> groups_;
};

// What a power cut does to the writes that were pending.
enum class CutPolicy {
  kKeepAll,
  kDropAll,
  kPrefix,         // the first ones, in the order in which they were begun
  kRandomSubset,   // each with an even chance
  kSingleMissing,  // all but one
  kSingleKept,     // one only
};
inline constexpr int kCutPolicyCount = 6;

struct CutOptions {
  CutPolicy policy = CutPolicy::kRandomSubset;
  bool reorder = true;       // writes that overlap take effect in any order
  double tear_chance = 0.5;  // of a kept write: only some of its units arrive
  Bytes unit{512};           // is written whole or not at all
};

class DiskImage {
 public:
  using WriteId = std::uint64_t;

  void Read(Offset at, MutableView into) const { current_.Read(at, into); }
  // Takes effect for reads at once; survives a cut only as the cut's options say.
  WriteId Write(Offset at, ConstView from);
  // The write survives from now on. Earlier pending writes of the same blocks do not undo it.
  void Persist(WriteId id);
  // All writes up to now do.
  void PersistAll();

  // The power goes and comes back: what was pending is decided, and nothing is pending any more.
  void Cut(const CutOptions& options, Random& random);

  std::size_t pending_count() const { return pending_.size(); }
  Bytes pending_bytes() const;

 private:
  struct Pending {
    Offset at;
    std::vector<std::byte> bytes;
  };

  using PendingMap = std::map<WriteId, Pending>;  // by the order in which they were begun
  using PlaceMap = std::multimap<Offset, WriteId>;

  void Keep(const Pending& write, const CutOptions& options, Random& random);
  void Overwrite(const Pending& write, WriteId id);  // what earlier ones hold of its blocks

  SparseBytes current_;
  SparseBytes durable_;
  PendingMap pending_;
  PlaceMap places_;  // of the pending writes
  Bytes longest_;    // of all writes so far
  // Of writes that are over: memory for the next ones, so that a simulation allocates none.
  std::vector<PendingMap::node_type> spare_pending_;
  std::vector<PlaceMap::node_type> spare_places_;
  WriteId next_id_ = 1;
};

}  // namespace labrack::block
