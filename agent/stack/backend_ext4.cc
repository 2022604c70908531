// ext4 on the first disk. Inode tables and journal are written by mkfs, not by the kernel in the
// background while we measure (lazy_itable_init); nothing is discarded (see disks.h).
#include "agent/stack/mounted_stack.h"
#include "agent/stack/option_words.h"

namespace labrack::stack {
namespace {

const ToolGrammar& Grammar() {
  static const ToolGrammar grammar{
      .program = "mkfs.ext4",
      .flags = "jvFq",
      .with_value = "bCEgGiIJLmMNoOrtTUe",
      .long_options = {},
      .long_flags = {},
      .refused_text = {"device=", "discard", "offset="},
  };
  return grammar;
}

// mkfs.ext4 takes the last -E alone, so that those of the playbook are joined to ours.
std::vector<std::string> MkfsWords(const v1::Ext4Stack& ext4) {
  std::string extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
  std::vector<std::string> words = {"mkfs.ext4", "-q"};
  const auto& given = ext4.mkfs_options();
  for (int i = 0; i < given.size(); ++i) {
    if (given[i] == "-E" && i + 1 < given.size()) {
      extended += "," + given[++i];
    } else if (given[i].starts_with("-E")) {
      extended += "," + given[i].substr(2);
    } else {
      words.push_back(given[i]);
    }
  }
  words.insert(words.end(), {"-E", extended});
  return words;
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "ext4"; }

  std::string WhyUnsupported(const HostAbility& ability) const override {
    return WhyNoFileSystem(ability, "ext4", "mkfs.ext4", "e2fsprogs");
  }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks&) const override {
    const v1::Ext4Stack& ext4 = spec.ext4();
    if (Result<void> checked =
            CheckToolWords(Grammar(), {ext4.mkfs_options().begin(), ext4.mkfs_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    if (Result<void> checked =
            CheckMountOptions({ext4.mount_options().begin(), ext4.mount_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    return DiskNeeds{.count_used = 1, .size_min = 16_MiB};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const v1::Ext4Stack& ext4 = context.request.stack.host().ext4();
    return FormatAndMount(
        context, {.file_system = "ext4",
                  .mkfs_words = MkfsWords(ext4),
                  .mount_options = {ext4.mount_options().begin(), ext4.mount_options().end()},
                  .description = "ext4",
                  .size_share_min = 0.3,
                  .size_share_max = 1});
  }
};

}  // namespace

const StackBackend& Ext4Backend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
