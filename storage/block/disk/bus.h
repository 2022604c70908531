// Bus: what the disks of one controller share. One transfer at a time, in the order in which they
// are asked for; a disk is off the bus while it positions. Pure bookkeeping of instants: who asks
// sleeps until the answer himself.
//
//   disk 0   ==seek==rotate==[medium]
//   bus      [11]............[0 0 0 0]     a read moves while the medium gives its last bytes,
//   disk 1   ====seek==rotate==[mm]        a write before it gets there
#pragma once

#include <cstdint>

#include "storage/base/bytes.h"
#include "storage/base/clock.h"
#include "storage/base/result.h"

namespace labrack::block {

struct BusOptions {
  std::uint64_t bytes_per_second = 0;
  std::int64_t arbitration_ns = 0;  // of each transfer

  Result<void> Validate() const;  // kInvalidArgument
};

class Bus {
 public:
  explicit Bus(BusOptions options);  // valid ones

  // What moving `length` takes when nobody else is there.
  Nanoseconds Time(Bytes length) const;
  // A transfer that may begin at `from`: when it is over.
  TimePoint Take(TimePoint from, Bytes length);
  // A transfer whose last byte is there at `until`, and whose first ones may have moved before, as
  // far as the bus was free: when it is over, `until` at the earliest.
  TimePoint TakeUntil(TimePoint until, Bytes length);

  Nanoseconds busy() const { return busy_; }  // altogether

 private:
  BusOptions options_;
  TimePoint free_at_{};
  Nanoseconds busy_{0};
};

}  // namespace labrack::block
