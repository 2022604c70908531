// WriteCache: writes that a disk has acknowledged and not yet written, by place. They are written
// back in the order of their places, from where the last one ended, neighbours together (an
// elevator), since that is why a disk keeps them.
//
//   place    [w3][w1]      [w7]   [w2][w9][w4]
//                 ^cursor         one run: w2, w9, w4
#pragma once

#include <map>
#include <vector>

#include "storage/base/bytes.h"
#include "storage/block/disk/disk_image.h"

namespace labrack::block {

class WriteCache {
 public:
  struct Run {
    Offset at;
    Bytes length;
    Bytes held;                           // of the cache, until the run is written
    std::vector<DiskImage::WriteId> ids;  // in the order in which they were begun
  };

  bool empty() const { return writes_.empty(); }
  Bytes bytes() const { return bytes_; }
  void Add(Offset at, Bytes length, DiskImage::WriteId id);
  // One write holds all of it.
  bool Holds(Offset at, Bytes length) const;
  // Where the next run begins. Not when empty.
  Offset NextPlace() const;
  // Takes the next run out: `length_max` at most, or a single write.
  Run TakeRun(Bytes length_max);
  void Clear();

 private:
  struct Write {
    Bytes length;
    std::vector<DiskImage::WriteId> ids;  // of this place
  };

  std::map<Offset, Write> writes_;
  Bytes bytes_;
  Offset cursor_;
};

}  // namespace labrack::block
