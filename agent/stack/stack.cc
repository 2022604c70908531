#include "agent/stack/stack.h"

#include <algorithm>

#include "agent/exec/run.h"
#include "agent/stack/core_stack.h"
#include "agent/stack/places.h"
#include "agent/stack/stack_backend.h"
#include "storage/base/units.h"

namespace labrack::stack {
namespace {

constexpr std::size_t kTagLengthMax = 200;

Result<void> CheckRequest(const BuildRequest& request) {
  const std::string& tag = request.tag;
  const bool fine = std::all_of(tag.begin(), tag.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
  if (tag.empty() || tag.size() > kTagLengthMax || !fine || tag[0] == '.') {
    return Fail(Errc::kInvalidArgument, tag, "a tag holds 1 to 200 letters, digits and ._-");
  }
  if (request.timeout <= Nanoseconds(0)) {
    return Fail(Errc::kInvalidArgument, tag, "building a stack needs a time limit");
  }
  if (!request.disks_dir.is_absolute() || !request.mount_dir.is_absolute()) {
    return Fail(Errc::kInvalidArgument, tag, "the directories of a stack must be absolute");
  }
  return {};
}

// Needs and what the host can do, before anything is made.
Result<DiskNeeds> CheckNeeds(const StackBackend& backend, const BuildRequest& request) {
  const bool zfs = backend.kind() == "zfs";
  const std::string reason =
      backend.WhyUnsupported(ProbeHost(zfs ? ZfsProbe::kTry : ZfsProbe::kSkip));
  if (!reason.empty()) {
    return Fail(Errc::kUnsupported, std::string(backend.kind()), reason);
  }
  Result<DiskNeeds> needs = backend.Needs(request.stack.host(), request.disks);
  if (!needs) return needs;
  if (request.disks.count() < needs->count_used) {
    return Fail(Errc::kInvalidArgument, std::string(backend.kind()),
                "needs " + std::to_string(needs->count_used) + " disks, and `disks: {count}` is " +
                    std::to_string(request.disks.count()));
  }
  const Bytes size(request.disks.size());
  if (needs->count_used > 0 && size < needs->size_min) {
    return Fail(Errc::kInvalidArgument, std::string(backend.kind()),
                "needs disks of at least " + FormatBytesExact(needs->size_min) +
                    ", and `disks: {size}` is " + FormatBytesExact(size));
  }
  return needs;
}

class Builder {
 public:
  Builder(const BuildRequest& request, UndoLog& undo)
      : request_(request), undo_(undo), limit_(LimitOf(request)) {}

  Result<std::unique_ptr<BuiltStack>> Build(const StackBackend& backend, const DiskNeeds& needs) {
    if (Result<void> made = MakeDirectories(needs.count_used > 0); !made) {
      return std::unexpected(made.error());
    }
    Result<std::string> backing = DescribeBacking(request_);
    if (!backing) return std::unexpected(backing.error());
    Result<std::vector<Disk>> disks = std::vector<Disk>();
    if (needs.count_used > 0) {
      disks = MakeDisks({.directory = request_.disks_dir,
                         .count = needs.count_used,
                         .size = Bytes(request_.disks.size()),
                         .kind = request_.disks.kind(),
                         .prepare = request_.disks.prepare(),
                         .limit = limit_},
                        undo_);
      if (!disks) return std::unexpected(disks.error());
    }
    return backend.Build(
        {.request = request_,
         .mount_point = request_.mount_dir,
         .disks = *std::move(disks),
         .backing = *std::move(backing),
         .undo = undo_,
         .run = [this](std::vector<std::string> words) { return RunTool(std::move(words)); }});
  }

 private:
  Result<void> MakeDirectories(bool with_mount_point) {
    Result<std::filesystem::path> disks_dir = MakeTrialDirectory(request_.disks_dir, undo_);
    if (!disks_dir) return std::unexpected(disks_dir.error());
    request_.disks_dir = *std::move(disks_dir);
    if (!with_mount_point) return {};
    Result<std::filesystem::path> mount_dir = MakeTrialDirectory(request_.mount_dir, undo_);
    if (!mount_dir) return std::unexpected(mount_dir.error());
    request_.mount_dir = *std::move(mount_dir);
    return {};
  }

  Result<void> RunTool(std::vector<std::string> words) {
    if (Result<void> going = limit_.Check(); !going) return going;
    exec::Command command;
    command.words = std::move(words);
    command.directory = request_.disks_dir;
    command.timeout = std::max(Nanoseconds(1), limit_.until - MonotonicClock().Now());
    command.cancel = request_.cancel;
    const Result<exec::Outcome> outcome = exec::RunChecked(command);
    if (!outcome) return std::unexpected(outcome.error());
    return {};
  }

  BuildRequest request_;  // its directories become real paths
  UndoLog& undo_;
  BuildLimit limit_;
};

}  // namespace

Result<std::unique_ptr<BuiltStack>> BuildStack(const BuildRequest& request, UndoLog& undo) {
  if (Result<void> checked = CheckRequest(request); !checked) {
    return std::unexpected(checked.error());
  }
  if (request.stand_in.empty() && request.stack.has_volume()) {
    return BuildVolumeStack(request, undo);
  }
  const std::string_view kind =
      request.stand_in.empty() ? KindOf(request.stack.host()) : std::string_view("dir");
  const StackBackend* backend = FindBackend(kind);
  if (backend == nullptr) {
    return Fail(Errc::kUnsupported, request.stack.name(),
                "is of a kind that this agent does not know; is it older than the controller?");
  }
  BuildRequest wanted = request;
  if (!request.stand_in.empty()) wanted.stack.mutable_host()->mutable_dir()->clear_path();
  const Result<DiskNeeds> needs = CheckNeeds(*backend, wanted);
  if (!needs) return std::unexpected(needs.error());
  return Builder(wanted, undo).Build(*backend, *needs);
}

}  // namespace labrack::stack
