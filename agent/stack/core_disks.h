// CoreDisks: the disks of a core stack, each with its queue and its counters.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/stack/core_stack.h"
#include "labrack/v1/host.pb.h"
#include "labrack/v1/stack.pb.h"
#include "storage/base/random.h"
#include "storage/block/disk/presets.h"

namespace labrack::stack {

class CoreDisks {
 public:
  // Files that are there, of their own size. All of them are locked while this lives.
  Result<void> OpenFiles(runtime::Reactor& reactor, std::span<const std::filesystem::path> paths);
  // kExhausted where there is not so much memory.
  Result<void> MakeRam(std::uint32_t count, Bytes size);
  Result<void> MakeModelled(runtime::Reactor& reactor, const v1::Disks& disks, Seed seed);
  // After one of them; above goes what the volume uses.
  Result<void> AddQueues(runtime::Reactor& reactor, const v1::DiskQueue& spec);

  // The devices that a volume is built on, in their order.
  const std::vector<block::BlockDevice*>& tops() const { return tops_; }
  // Whether all of them read as zeros where nothing was written.
  bool zeroed() const { return zeroed_; }
  // What a reader of results should know of them: "through the page cache: ..."; may be empty.
  const std::string& note() const { return note_; }
  void Read(IoReading& into) const;

 private:
  bool rotating_ = false;
  bool zeroed_ = false;
  std::string note_;
  block::ModelledDisks modelled_;
  std::vector<std::unique_ptr<block::BlockDevice>> real_;
  std::vector<block::BlockDevice*> bottoms_;
  std::vector<std::unique_ptr<block::IoQueue>> queues_;
  std::vector<std::unique_ptr<block::StatsDevice>> stats_;
  std::vector<block::BlockDevice*> tops_;
};

// What `disks: {model}` may name.
std::vector<v1::ModelledDisk> ModelledDiskPresets();

}  // namespace labrack::stack
