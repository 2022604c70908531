// Component: the piece of a device that a volume is made of, and what the volume tells about it.
//
//   disk:    | state database, 2 slots | the volume's log | data ...                  |
//            0                         log_at             data_at
//   volume:  | the volume's log | data ...                                            |
//            0 = log_at         data_at
//
// The log is the area that the kind of the volume asks for on every component: dirty regions of a
// mirror, prewrites of a RAID-5, nothing for concat and stripe. Where a volume lies on another
// volume there is no database at its head (the disks below carry it), but the log is there all the
// same; so volumes stack freely.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "storage/block/block_device.h"

namespace labrack::volume {

using runtime::Task;

// Stored; the numbers stay.
enum class State : std::uint8_t {
  kOkay = 0,       // holds what the volume holds
  kResyncing = 1,  // takes every write, is not read yet
  kOffline = 2,    // set aside by its owner: neither read nor written, its dirty regions are kept
  kFailed = 3,     // stale from its first lost write on; only a whole resync brings it back
};
inline constexpr int kStateCount = 4;
std::string_view StateName(State state);  // "okay", "resyncing", "offline", "failed"

struct Component {
  block::BlockDevice* device = nullptr;  // outlives the volume
  Offset data_at = {};
  Bytes data_size = {};
  Offset log_at = {};
  Bytes log_size = {};
  State state = State::kOkay;
};

// The part of a component that a device of `size` leaves for data, in whole units of `unit`.
// `head` is what stands before the log. kInvalidArgument when nothing would be left.
Result<Component> PlaceComponent(block::BlockDevice& device, Bytes head, Bytes log_size,
                                 Bytes unit);

// Nothing is wrong with `components` as parts of one volume, beside the devices that are `present`
// in it already. `block_size`: of the volume; zero when these are the first. kInvalidArgument says
// what is wrong: mixed sector sizes, one device twice, no room for data.
Result<void> CheckParts(std::string_view kind, std::span<const Component> components,
                        std::span<block::BlockDevice* const> present, Bytes block_size);

// What a volume answers that was made with FlushMode::kRefuse.
Result<void> FlushRefused(std::string_view kind);

// What remembers the states of one volume's components across crashes: the state database, or for
// what needs no memory, nothing (null).
class Ledger {
 public:
  virtual ~Ledger() = default;

  // On return the state is durable, and survives whatever the set survives. A volume that lost a
  // component has this done before it acknowledges what the component missed. Errors: kUnavailable
  // when too few disks took it; then nothing may be acknowledged.
  virtual Task<Result<void>> Record(block::IoContext io, std::size_t slot, State state) = 0;

  // A hot spare of at least `size` bytes of data takes the place of the component `slot`,
  // durably, as kResyncing. nullopt when there is none that fits.
  virtual Task<Result<std::optional<Component>>> TakeSpare(block::IoContext io, std::size_t slot,
                                                           Bytes size) = 0;
};

}  // namespace labrack::volume
