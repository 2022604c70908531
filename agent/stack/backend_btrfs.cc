// btrfs over all disks. Data and metadata have a profile each. The mount names every device, so
// that no scan of the host's other devices is needed; asynchronous discard is off unless it is
// asked for, since it would punch holes into the disks' files while we measure.
#include <algorithm>
#include <array>

#include "agent/stack/mounted_stack.h"
#include "agent/stack/option_words.h"

namespace labrack::stack {
namespace {

struct Profile {
  v1::BtrfsProfile value;
  const char* name;
  std::uint32_t disks_min;
};
constexpr std::array<Profile, 6> kProfiles = {{{v1::BTRFS_PROFILE_UNSPECIFIED, "single", 1},
                                               {v1::BTRFS_PROFILE_SINGLE, "single", 1},
                                               {v1::BTRFS_PROFILE_RAID0, "raid0", 2},
                                               {v1::BTRFS_PROFILE_RAID1, "raid1", 2},
                                               {v1::BTRFS_PROFILE_RAID10, "raid10", 4},
                                               {v1::BTRFS_PROFILE_RAID5, "raid5", 3}}};

// What mkfs.btrfs 6.2 needs of each device: 109 MiB without redundancy, else 125 MiB.
constexpr Bytes kSizeMinSingle = 110_MiB;
constexpr Bytes kSizeMinOther = 125_MiB;

Result<Profile> FindProfile(v1::BtrfsProfile value) {
  for (const Profile& profile : kProfiles) {
    if (profile.value == value) return profile;
  }
  return Fail(Errc::kUnsupported, "btrfs",
              "profile " + std::to_string(value) + " is not known to this agent");
}

const ToolGrammar& Grammar() {
  static const ToolGrammar grammar{
      .program = "mkfs.btrfs",
      .flags = "MKfqv",
      .with_value = "bAlnsLOUR",
      .long_options = {"--byte-count", "--nodesize", "--sectorsize", "--label", "--features",
                       "--runtime-features", "--uuid", "--csum", "--checksum"},
      .long_flags = {"--mixed", "--nodiscard"},
      .refused_text = {},
  };
  return grammar;
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "btrfs"; }

  std::string WhyUnsupported(const HostAbility& ability) const override {
    return WhyNoFileSystem(ability, "btrfs", "mkfs.btrfs", "btrfs-progs");
  }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks& disks) const override {
    const v1::BtrfsStack& btrfs = spec.btrfs();
    for (v1::BtrfsProfile value : {btrfs.data(), btrfs.metadata()}) {
      const Result<Profile> profile = FindProfile(value);
      if (!profile) return std::unexpected(profile.error());
      if (disks.count() < profile->disks_min) {
        return Fail(Errc::kInvalidArgument, "btrfs",
                    std::string("profile ") + profile->name + " needs " +
                        std::to_string(profile->disks_min) + " disks, and `disks: {count}` is " +
                        std::to_string(disks.count()));
      }
    }
    if (Result<void> checked =
            CheckToolWords(Grammar(), {btrfs.mkfs_options().begin(), btrfs.mkfs_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    if (Result<void> checked =
            CheckMountOptions({btrfs.mount_options().begin(), btrfs.mount_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    const bool single =
        btrfs.data() <= v1::BTRFS_PROFILE_SINGLE && btrfs.metadata() <= v1::BTRFS_PROFILE_SINGLE;
    return DiskNeeds{.count_used = disks.count(),
                     .size_min = single ? kSizeMinSingle : kSizeMinOther};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const v1::BtrfsStack& btrfs = context.request.stack.host().btrfs();
    const Result<Profile> data = FindProfile(btrfs.data());
    if (!data) return std::unexpected(data.error());
    const Result<Profile> metadata = FindProfile(btrfs.metadata());
    if (!metadata) return std::unexpected(metadata.error());

    std::vector<std::string> words = {"mkfs.btrfs", "-q", "-K",          "-d",
                                      data->name,   "-m", metadata->name};
    words.insert(words.end(), btrfs.mkfs_options().begin(), btrfs.mkfs_options().end());
    std::vector<std::string> options;
    for (const Disk& disk : context.disks) options.push_back("device=" + disk.loop.node());
    const auto& given = btrfs.mount_options();
    const bool speaks_of_discard = std::any_of(
        given.begin(), given.end(),
        [](const std::string& option) { return option.find("discard") != std::string::npos; });
    if (!speaks_of_discard) options.push_back("nodiscard");
    options.insert(options.end(), given.begin(), given.end());

    std::string description = std::string("btrfs ") + data->name;
    if (std::string_view(data->name) != metadata->name) {
      description += std::string(" (metadata ") + metadata->name + ")";
    }
    return FormatAndMount(context, {.file_system = "btrfs",
                                    .mkfs_words = std::move(words),
                                    .mount_options = std::move(options),
                                    .description = std::move(description),
                                    .size_share_min = 0.2,
                                    .size_share_max = 1});
  }
};

}  // namespace

const StackBackend& BtrfsBackend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
