// VolumeBuilder: from a VolumeShape and disks to the devices that make the volume. What is built
// holds no state of its own on the disks but the logs of mirrors and RAID-5s: it lives for one
// trial, so there is no state database to find it by.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/stack/volume_shape.h"
#include "storage/base/random.h"
#include "storage/block/block_device.h"
#include "storage/runtime/reactor.h"

namespace labrack::stack {

class VolumeBuilder {
 public:
  // `zeroed`: the disks read as zeros. In either case all disks hold the same (disks.cc), so
  // submirrors are equal; the parity of disks that are not zero is worked out.
  VolumeBuilder(runtime::Reactor& reactor, bool zeroed, Seed seed)
      : reactor_(reactor), zeroed_(zeroed), random_(seed) {}
  ~VolumeBuilder();
  VolumeBuilder(const VolumeBuilder&) = delete;
  VolumeBuilder& operator=(const VolumeBuilder&) = delete;

  // Of the first shape->disks() disks. Errors: kInvalidArgument for disks that cannot make it,
  // before anything is written; kIo.
  runtime::Task<Result<block::BlockDevice*>> Build(const VolumeShape* shape,
                                                   std::vector<block::BlockDevice*> disks);
  // Waits for what goes on behind acknowledgements. Must end before this is destroyed, also when
  // Build has failed.
  runtime::Task<Result<void>> Close();

  // kIo, naming the component, once one has failed: what is measured then is another volume.
  Result<void> Check() const;

 private:
  using Components = std::vector<volume::Component>;

  struct Layer {
    std::unique_ptr<block::BlockDevice> device;
    volume::Mirror* mirror = nullptr;  // where it is one
    volume::Raid5* raid5 = nullptr;    // likewise
  };

  block::BlockDevice* Keep(std::unique_ptr<block::BlockDevice> device);
  Result<Components> Place(const VolumeShape& shape, std::span<block::BlockDevice* const> parts);
  runtime::Task<Result<block::BlockDevice*>> Join(const VolumeShape* shape, Components components);
  runtime::Task<Result<block::BlockDevice*>> JoinMirror(const VolumeShape* shape,
                                                        Components components);
  runtime::Task<Result<block::BlockDevice*>> JoinRaid5(const VolumeShape* shape,
                                                       Components components);

  runtime::Reactor& reactor_;
  bool zeroed_;
  Random random_;
  std::vector<Layer> layers_;  // each above those before it
};

}  // namespace labrack::stack
