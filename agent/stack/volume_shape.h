// VolumeShape: a playbook's volume, brought to one form: a kind, its options, and what its
// components are; and how many disks go where.
//
//   mirror, submirrors 2, of a stripe, over 4 disks:    Mirror( Stripe(0, 1), Stripe(2, 3) )
//   stripe of mirrors, over 4 disks:                    Stripe( Mirror(0, 1), Mirror(2, 3) )
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "labrack/v1/stack.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/result.h"
#include "storage/volume/mirror.h"
#include "storage/volume/raid5.h"
#include "storage/volume/records.h"

namespace labrack::stack {

struct VolumeShape {
  volume::Kind kind = volume::Kind::kConcat;
  Bytes interlace = {};  // of a stripe or RAID-5
  volume::ReadPolicy read_policy = volume::ReadPolicy::kRoundRobin;
  volume::ParityLogMode parity_log = volume::ParityLogMode::kPrewrite;
  block::FlushMode flush = block::FlushMode::kPass;
  std::unique_ptr<VolumeShape> of;  // null: the disks themselves

  std::uint32_t parts = 0;     // components
  std::uint32_t per_part = 0;  // disks of each

  // Over the first of `disks` disks, as many as it can use. kInvalidArgument: no kind is set, they
  // are too few, or they cannot be shared equally.
  static Result<VolumeShape> From(const v1::VolumeStack& spec, std::uint32_t disks);

  std::uint32_t disks() const { return parts * per_part; }
  // "mirror (2) of stripe (16KiB)"
  std::string Describe() const;
};

}  // namespace labrack::stack
