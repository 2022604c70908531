// StackBackend: one kind of host stack (a field of v1::HostStack). One file per kind; the table of
// all is in backends.cc.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stack/disks.h"
#include "agent/stack/host_ability.h"
#include "agent/stack/stack.h"

namespace labrack::stack {

// The smallest disks that a backend can do with.
struct DiskNeeds {
  std::uint32_t count_used = 0;  // of the request's disks; 0: needs no disks
  Bytes size_min;                // of each
};

// What a backend builds with. The directories are there.
struct BuildContext {
  const BuildRequest& request;
  std::filesystem::path mount_point;  // an empty directory
  std::vector<Disk> disks;            // as many as DiskNeeds asked for
  std::string backing;                // of the disks
  UndoLog& undo;
  // Runs a tool in the trial's own directory, within what is left of the time.
  std::function<Result<void>(std::vector<std::string> words)> run;
};

class StackBackend {
 public:
  virtual ~StackBackend() = default;

  // The field of v1::HostStack.
  virtual std::string_view kind() const = 0;
  // Why a host cannot build it, with the package that is missing; empty when it can.
  virtual std::string WhyUnsupported(const HostAbility& ability) const = 0;
  // kInvalidArgument for too few disks and for options that are not accepted.
  virtual Result<DiskNeeds> Needs(const v1::HostStack& spec, const v1::Disks& disks) const = 0;
  virtual Result<std::unique_ptr<BuiltStack>> Build(const BuildContext& context) const = 0;
};

std::span<const StackBackend* const> Backends();
// Null for a kind that is none.
const StackBackend* FindBackend(std::string_view kind);
// The kind that is set in the message; empty when none is.
std::string_view KindOf(const v1::HostStack& spec);

// "mkfs.xfs is not installed (package xfsprogs)" and the like, for what all disk-based kinds need.
std::string WhyNoFileSystem(const HostAbility& ability, std::string_view file_system,
                            std::string_view program, std::string_view package);

// The backends, each in its own file.
const StackBackend& DirBackend();
const StackBackend& Ext4Backend();
const StackBackend& XfsBackend();
const StackBackend& BtrfsBackend();
const StackBackend& ZfsBackend();

}  // namespace labrack::stack
