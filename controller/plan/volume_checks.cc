#include "controller/plan/volume_checks.h"

#include <string>
#include <vector>

#include "controller/plan/names.h"
#include "controller/plan/stack_facts.h"
#include "proto/convert/volume_disks.h"
#include "storage/base/units.h"

namespace labrack::plan {
namespace {

// The smallest sector that a disk may have.
constexpr std::uint64_t kSector = 512;

class VolumeCheck {
 public:
  VolumeCheck(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter)
      : playbook_(playbook),
        cell_(cell),
        reporter_(reporter),
        stack_path_("stacks." + cell.stack.name()) {}

  bool Choice() {
    const v1::Stack& stack = cell_.stack;
    if (stack.has_host() == stack.has_volume()) {
      return Report(playbook_.FindKey(stack_path_),
                    {"LR344",
                     "stack `" + stack.name() +
                         (stack.has_host() ? "` has both `host` and `volume`"
                                           : "` has neither `host` nor `volume`"),
                     "",
                     {"`host` is a stack of the host's own kernel, `volume` one of our own core"},
                     {stack.has_host() ? "leave one of them out, or make two stacks of them"
                                       : "write `host: {ext4: {}}` or `volume: {stripe: {}}`"}});
    }
    if (stack.has_host() && stack.has_queue()) {
      return Report(playbook_.Find(stack_path_ + ".queue"),
                    {"LR344",
                     "`queue` belongs to a `volume`; the host's kernel has queues of its own",
                     "",
                     {},
                     {"leave it out"}});
    }
    return Models();
  }

  bool Volume() { return Queue() && Disks() && Interlaces() && NeedsNoFiles(); }

 private:
  bool Report(const Place& place, Finding finding) {
    if (!cell_.conditions.empty()) finding.notes.push_back("with " + cell_.conditions);
    reporter_.Add(place, std::move(finding));
    return false;
  }

  std::string VolumePath() const { return stack_path_ + ".volume." + StackKind(cell_.stack); }

  bool Models() {
    if (!IsModelled(cell_.disks)) return true;
    if (cell_.stack.has_host()) {
      return Report(playbook_.Find("disks.model"),
                    {"LR348",
                     "stack `" + cell_.stack.name() + "` cannot be built on modelled disks",
                     "",
                     {"modelled disks live in virtual time, and the host's kernel does not"},
                     {"use `volume` stacks, or leave `model` out"}});
    }
    bool right = true;
    for (const char* field : {"kind", "prepare"}) {
      const std::string path = std::string("disks.") + field;
      if (!playbook_.places.contains(path)) continue;
      right = Report(playbook_.Find(path),
                     {"LR348",
                      "`" + std::string(field) + "` means nothing for modelled disks",
                      "",
                      {},
                      {"leave it or `model` out"}});
    }
    if (cell_.disks.size() % kModelUnit == 0) return right;
    return Report(playbook_.Find("disks.size"),
                  {"LR348",
                   "modelled disks hold whole blocks of 4KiB; `size` is " +
                       FormatBytesExact(Bytes(cell_.disks.size())),
                   "",
                   {},
                   {"make `size` a multiple of 4KiB"}});
  }

  bool Queue() {
    const v1::DiskQueue& queue = cell_.stack.queue();
    if (queue.pending_max() == 0 || queue.policy() == v1::QUEUE_POLICY_LEGACY) return true;
    return Report(playbook_.Find(stack_path_ + ".queue.pending_max"),
                  {"LR345",
                   "`pending_max` is the limit of `policy: legacy` only",
                   "",
                   {},
                   {"add `policy: legacy`, or leave `pending_max` out"}});
  }

  bool Disks() {
    const Result<convert::VolumeDisks> share =
        convert::ShareDisks(cell_.stack.volume(), cell_.disks.count());
    if (share) return true;
    const std::uint32_t min = convert::VolumeDisksMin(cell_.stack.volume());
    return Report(
        playbook_.Find(VolumePath()),
        {"LR340",
         "volume `" + cell_.stack.name() + "` " + share.error().note(),
         "",
         {},
         {cell_.disks.count() < min ? "set `disks: {count: " + std::to_string(min) + "}` or more"
                                    : "change `disks: {count}`"}});
  }

  bool Interlace(const std::string& path, std::uint64_t interlace) {
    if (interlace % kSector == 0) return true;
    return Report(playbook_.Find(path + ".interlace"),
                  {"LR346",
                   "an interlace of " + FormatBytesExact(Bytes(interlace)) +
                       " is no multiple of the sector of 512B",
                   "",
                   {},
                   {"set it to a multiple of 512B; disks with sectors of 4KiB take multiples of "
                    "that"}});
  }

  bool PartInterlace(const std::string& path, const v1::PartVolume& part) {
    if (part.has_stripe()) return Interlace(path + ".of.stripe", part.stripe().interlace());
    if (part.has_raid5()) return Interlace(path + ".of.raid5", part.raid5().interlace());
    return true;
  }

  bool Interlaces() {
    const v1::VolumeStack& volume = cell_.stack.volume();
    const std::string path = VolumePath();
    switch (volume.kind_case()) {
      case v1::VolumeStack::kConcat:
        return PartInterlace(path, volume.concat().of());
      case v1::VolumeStack::kStripe:
        return Interlace(path, volume.stripe().interlace()) &&
               PartInterlace(path, volume.stripe().of());
      case v1::VolumeStack::kMirror:
        return PartInterlace(path, volume.mirror().of());
      case v1::VolumeStack::kRaid5:
        return Interlace(path, volume.raid5().interlace()) &&
               PartInterlace(path, volume.raid5().of());
      case v1::VolumeStack::KIND_NOT_SET:
        return true;
    }
    return true;
  }

  bool NeedsNoFiles() {
    const v1::Workload& workload = cell_.workload;
    const bool raw = workload.has_stream() || workload.has_random() || workload.has_sync_pages() ||
                     (workload.has_checksum() && !workload.checksum().holes());
    if (raw) return true;
    return Report(playbook_.FindKey("workloads." + workload.name()),
                  {"LR347",
                   "workload `" + workload.name() + "` needs a file system, and stack `" +
                       cell_.stack.name() + "` is a bare volume",
                   "",
                   {"`stream`, `random`, `sync_pages`, and `checksum` without holes run on a "
                    "volume"},
                   {"leave the pair out with `exclude`, or use another workload"}});
  }

  static constexpr std::uint64_t kModelUnit = 4096;

  const LoadedPlaybook& playbook_;
  const ExpandedCell& cell_;
  Reporter& reporter_;
  const std::string stack_path_;
};

}  // namespace

bool CheckStackChoice(const LoadedPlaybook& playbook, const ExpandedCell& cell,
                      Reporter& reporter) {
  return VolumeCheck(playbook, cell, reporter).Choice();
}

bool CheckVolume(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter) {
  return VolumeCheck(playbook, cell, reporter).Volume();
}

}  // namespace labrack::plan
