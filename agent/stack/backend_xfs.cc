// XFS on the first disk. mkfs.xfs refuses less than 300 MiB; nothing is discarded (see disks.h).
#include "agent/stack/mounted_stack.h"
#include "agent/stack/option_words.h"

namespace labrack::stack {
namespace {

constexpr Bytes kSizeMin = 300_MiB;  // of xfsprogs 5.19 and later

const ToolGrammar& Grammar() {
  static const ToolGrammar grammar{
      .program = "mkfs.xfs",
      .flags = "fKq",
      .with_value = "bdilmnsL",
      .long_options = {},
      .long_flags = {},
      .refused_text = {"logdev", "rtdev", "name=", "file"},
  };
  return grammar;
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "xfs"; }

  std::string WhyUnsupported(const HostAbility& ability) const override {
    return WhyNoFileSystem(ability, "xfs", "mkfs.xfs", "xfsprogs");
  }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks&) const override {
    const v1::XfsStack& xfs = spec.xfs();
    if (Result<void> checked =
            CheckToolWords(Grammar(), {xfs.mkfs_options().begin(), xfs.mkfs_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    if (Result<void> checked =
            CheckMountOptions({xfs.mount_options().begin(), xfs.mount_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    return DiskNeeds{.count_used = 1, .size_min = kSizeMin};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const v1::XfsStack& xfs = context.request.stack.host().xfs();
    std::vector<std::string> words = {"mkfs.xfs", "-q", "-K"};
    words.insert(words.end(), xfs.mkfs_options().begin(), xfs.mkfs_options().end());
    return FormatAndMount(
        context, {.file_system = "xfs",
                  .mkfs_words = std::move(words),
                  .mount_options = {xfs.mount_options().begin(), xfs.mount_options().end()},
                  .description = "xfs",
                  .size_share_min = 0.3,
                  .size_share_max = 1});
  }
};

}  // namespace

const StackBackend& XfsBackend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
