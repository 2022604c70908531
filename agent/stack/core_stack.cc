#include "agent/stack/core_stack.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/stack/core_disks.h"
#include "agent/stack/places.h"
#include "agent/stack/volume_builder.h"
#include "storage/base/units.h"
#include "storage/runtime/open_reactor.h"
#include "storage/runtime/sim_reactor.h"

namespace labrack::stack {
namespace {

class VolumeStack final : public BuiltStack, public CoreStack {
 public:
  VolumeStack(const BuildRequest& request, UndoLog& undo) : request_(request), undo_(undo) {}
  ~VolumeStack() override;

  Result<void> Build();

  CoreStack* core() override { return this; }
  const std::filesystem::path& directory() const override { return no_directory_; }
  Bytes capacity() const override { return volume_->geometry().size; }
  const std::vector<DeviceRef>& devices() const override { return no_devices_; }
  Result<void> DropCaches() override { return {}; }  // there are none
  Result<void> Check() const override { return builder_->Check(); }
  const std::string& description() const override { return description_; }
  const std::string& backing() const override { return backing_; }

  runtime::Reactor& reactor() override { return *reactor_; }
  bool virtual_time() const override { return modelled(); }
  fs::FileSystem& files() override { return *files_; }
  IoReading Read() const override;

 private:
  bool modelled() const { return !request_.disks.model().empty(); }
  Result<void> OpenReactor();
  Result<void> OpenDisks(std::uint32_t count);
  Result<void> BuildVolume(const VolumeShape& shape);
  void Describe(const VolumeShape& shape);

  const BuildRequest request_;
  UndoLog& undo_;
  const std::filesystem::path no_directory_;
  const std::vector<DeviceRef> no_devices_;

  // Each stands on those before it.
  std::unique_ptr<runtime::Reactor> reactor_;
  std::string reactor_name_;
  CoreDisks disks_;
  std::unique_ptr<VolumeBuilder> builder_;
  block::BlockDevice* volume_ = nullptr;
  std::unique_ptr<fs::FlatFileSystem> files_;

  std::string description_;
  std::string backing_;
};

VolumeStack::~VolumeStack() {
  files_.reset();
  // What it could not write is gone with the disks.
  if (builder_) (void)reactor_->Run(builder_->Close());
}

Result<void> VolumeStack::OpenReactor() {
  if (modelled()) {
    reactor_ = std::make_unique<runtime::SimReactor>(Derive(request_.seed, "reactor"));
    reactor_name_ = "virtual time";
    return {};
  }
  Result<runtime::OpenedReactor> opened = runtime::OpenReactor(runtime::ReactorKind::kBest);
  if (!opened) return std::unexpected(opened.error());
  reactor_ = std::move(opened->reactor);
  reactor_name_ = opened->name;
  if (!opened->note.empty()) reactor_name_ += " (" + opened->note + ")";
  return {};
}

Result<void> VolumeStack::OpenDisks(std::uint32_t count) {
  v1::Disks wanted = request_.disks;
  wanted.set_count(count);
  const Bytes size(wanted.size());
  if (modelled()) return disks_.MakeModelled(*reactor_, wanted, Derive(request_.seed, "disks"));
  if (wanted.kind() == v1::DISK_KIND_RAM) return disks_.MakeRam(count, size);
  Result<std::filesystem::path> directory = MakeTrialDirectory(request_.disks_dir, undo_);
  if (!directory) return std::unexpected(directory.error());
  const Result<std::vector<std::filesystem::path>> paths =
      MakeDiskFiles({.directory = *std::move(directory),
                     .count = count,
                     .size = size,
                     .kind = v1::DISK_KIND_FILE,
                     .prepare = wanted.prepare(),
                     .limit = LimitOf(request_)},
                    undo_);
  if (!paths) return std::unexpected(paths.error());
  return disks_.OpenFiles(*reactor_, *paths);
}

Result<void> VolumeStack::BuildVolume(const VolumeShape& shape) {
  builder_ =
      std::make_unique<VolumeBuilder>(*reactor_, disks_.zeroed(), Derive(request_.seed, "volume"));
  Result<block::BlockDevice*> built = reactor_->Run(builder_->Build(&shape, disks_.tops()));
  if (!built) return std::unexpected(built.error());
  volume_ = *built;
  files_ = std::make_unique<fs::FlatFileSystem>(*volume_);
  return {};
}

void VolumeStack::Describe(const VolumeShape& shape) {
  const v1::Disks& disks = request_.disks;
  const std::string what = modelled()                          ? "modelled " + disks.model()
                           : disks.kind() == v1::DISK_KIND_RAM ? "memory"
                                                               : "file";
  description_ = fmt::format("{} over {} {} disks of {}, {}", shape.Describe(), shape.disks(), what,
                             FormatBytesExact(Bytes(disks.size())), reactor_name_);
  if (!disks_.note().empty()) description_ += "; " + disks_.note();
}

Result<void> VolumeStack::Build() {
  const Result<VolumeShape> shape =
      VolumeShape::From(request_.stack.volume(), request_.disks.count());
  if (!shape) return std::unexpected(shape.error());
  if (Result<void> opened = OpenReactor(); !opened) return opened;
  if (Result<void> opened = OpenDisks(shape->disks()); !opened) return opened;
  if (Result<void> queued = disks_.AddQueues(*reactor_, request_.stack.queue()); !queued) {
    return queued;
  }
  if (Result<void> built = BuildVolume(*shape); !built) return built;
  Describe(*shape);
  Result<std::string> backing = DescribeBacking(request_);
  if (!backing) return std::unexpected(backing.error());
  backing_ = *std::move(backing);
  return {};
}

IoReading VolumeStack::Read() const {
  IoReading reading;
  disks_.Read(reading);
  reading.files = files_->stats();
  return reading;
}

}  // namespace

Result<std::unique_ptr<BuiltStack>> BuildVolumeStack(const BuildRequest& request, UndoLog& undo) {
  auto stack = std::make_unique<VolumeStack>(request, undo);
  if (Result<void> built = stack->Build(); !built) return std::unexpected(built.error());
  return stack;
}

}  // namespace labrack::stack
