#include "agent/stack/volume_builder.h"

#include <utility>

#include <fmt/format.h>

#include "storage/base/check.h"
#include "storage/base/units.h"
#include "storage/volume/concat.h"
#include "storage/volume/stripe.h"

namespace labrack::stack {
namespace {

using runtime::Task;
using volume::Kind;

block::IoContext BuildContext() { return {.purpose = block::Purpose::kResync}; }

Bytes LogSizeOf(const VolumeShape& shape, const block::Geometry& part) {
  if (shape.kind == Kind::kMirror) return volume::Mirror::kLogSize;
  if (shape.kind != Kind::kRaid5) return Bytes(0);
  return volume::Raid5::DefaultLogSize(shape.parity_log, part, shape.interlace);
}

bool HasInterlace(const VolumeShape& shape) {
  return shape.kind == Kind::kStripe || shape.kind == Kind::kRaid5;
}

Result<void> CheckState(std::string_view kind, std::size_t number, volume::State state) {
  if (state == volume::State::kOkay) return {};
  return Fail(Errc::kIo, std::string(kind),
              fmt::format("component {} is {}: what ran was another volume", number,
                          volume::StateName(state)));
}

}  // namespace

VolumeBuilder::~VolumeBuilder() {
  while (!layers_.empty()) layers_.pop_back();
}

block::BlockDevice* VolumeBuilder::Keep(std::unique_ptr<block::BlockDevice> device) {
  return layers_.emplace_back(Layer{.device = std::move(device)}).device.get();
}

Result<VolumeBuilder::Components> VolumeBuilder::Place(const VolumeShape& shape,
                                                       std::span<block::BlockDevice* const> parts) {
  Components components;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Bytes block = parts[i]->geometry().block_size;
    const Bytes unit = HasInterlace(shape) ? shape.interlace : block;
    if (!IsAligned(unit, block)) {
      return Fail(Errc::kInvalidArgument, shape.Describe(),
                  fmt::format("the interlace of {} is no multiple of the disks' block of {}",
                              FormatBytesExact(unit), FormatBytesExact(block)));
    }
    Result<volume::Component> placed =
        volume::PlaceComponent(*parts[i], Bytes(0), LogSizeOf(shape, parts[i]->geometry()), unit);
    if (!placed) {
      return Fail(Errc::kInvalidArgument, fmt::format("{}, component {}", shape.Describe(), i),
                  placed.error().note());
    }
    components.push_back(*placed);
  }
  return components;
}

Task<Result<block::BlockDevice*>> VolumeBuilder::Build(const VolumeShape* shape,
                                                       std::vector<block::BlockDevice*> disks) {
  LABRACK_CHECK(disks.size() >= shape->disks());
  std::vector<block::BlockDevice*> parts;
  for (std::uint32_t i = 0; i < shape->parts; ++i) {
    const auto first = disks.begin() + static_cast<std::ptrdiff_t>(i * shape->per_part);
    if (!shape->of) {
      parts.push_back(*first);
      continue;
    }
    std::vector<block::BlockDevice*> mine(first, first + shape->per_part);
    Result<block::BlockDevice*> part = co_await Build(shape->of.get(), std::move(mine));
    if (!part) co_return part;
    parts.push_back(*part);
  }
  Result<Components> components = Place(*shape, parts);
  if (!components) co_return std::unexpected(components.error());
  co_return co_await Join(shape, *std::move(components));
}

Task<Result<block::BlockDevice*>> VolumeBuilder::Join(const VolumeShape* shape,
                                                      Components components) {
  switch (shape->kind) {
    case Kind::kMirror:
      co_return co_await JoinMirror(shape, std::move(components));
    case Kind::kRaid5:
      co_return co_await JoinRaid5(shape, std::move(components));
    case Kind::kConcat: {
      Result<std::unique_ptr<volume::Concat>> made =
          volume::Concat::Create(reactor_, components, shape->flush);
      if (!made) co_return std::unexpected(made.error());
      co_return Keep(*std::move(made));
    }
    case Kind::kStripe: {
      Result<std::unique_ptr<volume::Stripe>> made =
          volume::Stripe::Create(reactor_, components, shape->interlace, shape->flush);
      if (!made) co_return std::unexpected(made.error());
      co_return Keep(*std::move(made));
    }
  }
  co_return Fail(Errc::kInternal, "a volume of no kind");
}

Task<Result<block::BlockDevice*>> VolumeBuilder::JoinMirror(const VolumeShape* shape,
                                                            Components components) {
  Result<void> formatted =
      co_await volume::Mirror::Format(&reactor_, components, volume::Mirror::Content::kEqual);
  if (!formatted) co_return std::unexpected(formatted.error());
  volume::MirrorOptions options;
  options.read_policy = shape->read_policy;
  options.flush_mode = shape->flush;
  Result<std::unique_ptr<volume::Mirror>> opened =
      co_await volume::Mirror::Open(&reactor_, std::move(components), options, nullptr);
  if (!opened) co_return std::unexpected(opened.error());
  volume::Mirror* mirror = opened->get();
  Keep(*std::move(opened));
  layers_.back().mirror = mirror;
  co_return mirror;
}

Task<Result<block::BlockDevice*>> VolumeBuilder::JoinRaid5(const VolumeShape* shape,
                                                           Components components) {
  const volume::Raid5Options options{.interlace = shape->interlace,
                                     .parity_log = shape->parity_log,
                                     .volume_id = random_.Next(),
                                     .zeroed = zeroed_,
                                     .flush_mode = shape->flush};
  Result<std::unique_ptr<volume::Raid5>> opened =
      co_await volume::Raid5::Open(reactor_, std::move(components), options, nullptr);
  if (!opened) co_return std::unexpected(opened.error());
  volume::Raid5* raid5 = opened->get();
  Keep(*std::move(opened));
  layers_.back().raid5 = raid5;
  co_return raid5;
}

Task<Result<void>> VolumeBuilder::Close() {
  Result<void> closed;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    Result<void> done;
    if (layer->mirror != nullptr) done = co_await layer->mirror->Close();
    if (layer->raid5 != nullptr) done = co_await layer->raid5->Close(BuildContext());
    if (!done && closed) closed = std::move(done);
  }
  co_return closed;
}

Result<void> VolumeBuilder::Check() const {
  for (const Layer& layer : layers_) {
    for (std::size_t i = 0; layer.mirror != nullptr && i < layer.mirror->slot_count(); ++i) {
      if (Result<void> okay = CheckState("mirror", i, layer.mirror->state(i)); !okay) return okay;
    }
    for (std::size_t i = 0; layer.raid5 != nullptr && i < layer.raid5->columns().count(); ++i) {
      Result<void> okay = CheckState("raid5", i, layer.raid5->columns()[i].state);
      if (!okay) return okay;
    }
  }
  return {};
}

}  // namespace labrack::stack
