// Counters of the kernel for the block devices under a stack.
#pragma once

#include <string>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "storage/base/result.h"

namespace labrack::stack {

struct DeviceRef {
  std::string name;   // of the kernel: "loop3", "vda1"
  std::string label;  // for people: "loop3 (disk 0)"
};

// Counts since the device was made, from /sys/class/block/NAME/stat. Devices of one call are read
// one right after the other.
Result<std::vector<v1::DeviceUse>> ReadDeviceUse(const std::vector<DeviceRef>& devices);

// What happened between two readings of the same devices. A counter that went back (the device was
// made anew) gives 0.
std::vector<v1::DeviceUse> Subtract(const std::vector<v1::DeviceUse>& after,
                                    const std::vector<v1::DeviceUse>& before);

}  // namespace labrack::stack
