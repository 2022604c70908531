// ZFS by the host's own tools: the kernel module, or zfs-fuse. One pool over all disks, with its
// root file system mounted at our mount point. The pool stays out of the host's cache file, so that
// it never comes back by itself after a restart.
#include <array>
#include <system_error>

#include "agent/exec/run.h"
#include "agent/stack/mounted_stack.h"
#include "agent/stack/option_words.h"
#include "agent/stack/undo_steps.h"

namespace labrack::stack {
namespace {

constexpr Bytes kSizeMin = 64_MiB;  // SPA_MINDEVSIZE
constexpr Nanoseconds kZpoolTimeout = std::chrono::seconds(60);

struct Layout {
  v1::ZfsLayout value;
  const char* name;
  const char* word;  // of zpool create, before the devices; empty: none
  std::uint32_t disks_min;
};
constexpr std::array<Layout, 6> kLayouts = {{{v1::ZFS_LAYOUT_UNSPECIFIED, "stripe", "", 1},
                                             {v1::ZFS_LAYOUT_STRIPE, "stripe", "", 1},
                                             {v1::ZFS_LAYOUT_MIRROR, "mirror", "mirror", 2},
                                             {v1::ZFS_LAYOUT_MIRRORS, "mirrors", "mirror", 4},
                                             {v1::ZFS_LAYOUT_RAIDZ, "raidz", "raidz", 3},
                                             {v1::ZFS_LAYOUT_RAIDZ2, "raidz2", "raidz2", 4}}};

Result<Layout> FindLayout(v1::ZfsLayout value) {
  for (const Layout& layout : kLayouts) {
    if (layout.value == value) return layout;
  }
  return Fail(Errc::kUnsupported, "zfs",
              "layout " + std::to_string(value) + " is not known to this agent");
}

// A pool name takes letters, digits and "-_.:".
std::string PoolName(const std::string& tag) {
  std::string name(kPoolPrefix);
  for (char c : tag) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.';
    name += fine ? c : '_';
  }
  return name;
}

Result<void> Zpool(std::vector<std::string> words) {
  exec::Command command;
  command.words = std::move(words);
  command.words.insert(command.words.begin(), "zpool");
  command.timeout = kZpoolTimeout;
  const Result<exec::Outcome> outcome = exec::RunChecked(command);
  if (!outcome) return std::unexpected(outcome.error());
  return {};
}

// Exporting and importing the pool is what empties its cache.
class ZfsStack final : public MountedStack {
 public:
  ZfsStack(MountedStackParts parts, std::string pool, std::filesystem::path links)
      : MountedStack(std::move(parts)), pool_(std::move(pool)), links_(std::move(links)) {}

  Result<void> DropCaches() override {
    if (Result<void> synced = SyncAll(); !synced) return synced;
    if (Result<void> exported = Zpool({"export", pool_}); !exported) return exported;
    if (Result<void> imported =
            Zpool({"import", "-d", links_.string(), "-o", "cachefile=none", pool_});
        !imported) {
      return imported;
    }
    return Check();
  }

 private:
  std::string pool_;
  std::filesystem::path links_;  // a directory of links to our devices, and to no others
};

Result<std::filesystem::path> LinkDevices(const BuildContext& context) {
  const std::filesystem::path links = context.request.disks_dir / "devices";
  if (Result<void> added = context.undo.Add({UndoKind::kRemoveTree, links.string(), ""}); !added) {
    return std::unexpected(added.error());
  }
  std::error_code code;
  std::filesystem::create_directory(links, code);
  for (const Disk& disk : context.disks) {
    if (!code) std::filesystem::create_symlink(disk.loop.node(), links / disk.loop.name, code);
  }
  if (code) return std::unexpected(Error::FromErrno(code.value(), "link devices", links.string()));
  return links;
}

std::vector<std::string> CreateWords(const BuildContext& context, const Layout& layout,
                                     const std::string& pool) {
  const v1::ZfsStack& zfs = context.request.stack.host().zfs();
  std::vector<std::string> words = {"zpool", "create", "-o", "cachefile=none"};
  for (const std::string& option : zfs.pool_options()) words.insert(words.end(), {"-o", option});
  for (const std::string& option : zfs.options()) words.insert(words.end(), {"-O", option});
  words.insert(words.end(), {"-m", context.mount_point.string(), pool});
  for (std::size_t i = 0; i < context.disks.size(); ++i) {
    const bool starts_group = i == 0 || (layout.value == v1::ZFS_LAYOUT_MIRRORS && i % 2 == 0);
    if (starts_group && *layout.word != '\0') words.emplace_back(layout.word);
    words.push_back(context.disks[i].loop.node());
  }
  return words;
}

class Backend final : public StackBackend {
 public:
  std::string_view kind() const override { return "zfs"; }

  std::string WhyUnsupported(const HostAbility& ability) const override {
    if (std::string reason = WhyNoDisks(ability); !reason.empty()) return reason;
    for (const char* program : {"zpool", "zfs"}) {
      if (!ability.programs.contains(program)) {
        return std::string(program) + " is not installed (package zfsutils-linux or zfs-fuse)";
      }
    }
    return ability.zfs_problem;
  }

  Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks& disks) const override {
    const v1::ZfsStack& zfs = spec.zfs();
    const Result<Layout> layout = FindLayout(zfs.layout());
    if (!layout) return std::unexpected(layout.error());
    const bool odd = zfs.layout() == v1::ZFS_LAYOUT_MIRRORS && disks.count() % 2 != 0;
    if (disks.count() < layout->disks_min || odd) {
      return Fail(Errc::kInvalidArgument, "zfs",
                  std::string("layout ") + layout->name + " needs " +
                      std::to_string(layout->disks_min) + " disks or more" +
                      (odd ? ", an even number" : "") + ", and `disks: {count}` is " +
                      std::to_string(disks.count()));
    }
    if (Result<void> checked =
            CheckZfsProperties({zfs.pool_options().begin(), zfs.pool_options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    if (Result<void> checked = CheckZfsProperties({zfs.options().begin(), zfs.options().end()});
        !checked) {
      return std::unexpected(checked.error());
    }
    return DiskNeeds{.count_used = disks.count(), .size_min = kSizeMin};
  }

  Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const override {
    const Result<Layout> layout = FindLayout(context.request.stack.host().zfs().layout());
    if (!layout) return std::unexpected(layout.error());
    const Result<std::filesystem::path> links = LinkDevices(context);
    if (!links) return std::unexpected(links.error());
    const std::string pool = PoolName(context.request.tag);
    // Two steps: destroying the pool unmounts it, unless the daemon of zfs-fuse has died.
    if (Result<void> added =
            context.undo.Add({UndoKind::kUnmount, context.mount_point.string(), ""});
        !added) {
      return std::unexpected(added.error());
    }
    if (Result<void> added = context.undo.Add({UndoKind::kDestroyPool, "", pool}); !added) {
      return std::unexpected(added.error());
    }
    if (Result<void> made = context.run(CreateWords(context, *layout, pool)); !made) {
      return std::unexpected(made.error());
    }
    const Result<std::optional<MountEntry>> mounted = MountAt(context.mount_point);
    if (!mounted) return std::unexpected(mounted.error());
    MountedStackParts parts{
        .mount = {.file_system = *mounted ? (*mounted)->file_system : "zfs",
                  .source = pool,
                  .target = context.mount_point,
                  .options = {}},
        .disks = context.disks,
        .description = std::string("zfs ") + layout->name + " on " + DescribeDisks(context.disks),
        .backing = context.backing,
        .size_share_min = 0.2,
        .size_share_max = 1};
    auto stack = std::make_unique<ZfsStack>(std::move(parts), pool, *links);
    if (Result<void> finished = stack->Finish(); !finished) {
      return std::unexpected(finished.error());
    }
    return stack;
  }
};

}  // namespace

const StackBackend& ZfsBackend() {
  static const Backend backend;
  return backend;
}

}  // namespace labrack::stack
