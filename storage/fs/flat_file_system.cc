#include "storage/fs/flat_file_system.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/units.h"

namespace labrack::fs {
namespace {

// Small enough for many files, large enough that a stream hardly notices where a unit ends.
constexpr std::uint64_t kUnitsWanted = 1024;
constexpr Bytes kUnitMin = 64_KiB;
constexpr Bytes kUnitMax = 16_MiB;

Bytes UnitOf(const block::Geometry& geometry) {
  const Bytes wanted = std::clamp(geometry.size / kUnitsWanted, kUnitMin, kUnitMax);
  return std::max(wanted / kUnitMin * kUnitMin, geometry.block_size);
}

Error NoSuchFile(std::string path) {
  return Error(Errc::kNotFound, std::move(path), "no such file");
}

}  // namespace

void ChainCounts::Add(const block::IoTally& tally) {
  ++count;
  ++by_depth[std::min<std::size_t>(tally.depth_max, kDepthMax)];
}

ChainCounts ChainCounts::Since(const ChainCounts& earlier) const {
  ChainCounts since{.count = count - earlier.count, .by_depth = {}};
  for (std::size_t depth = 0; depth < by_depth.size(); ++depth) {
    since.by_depth[depth] = by_depth[depth] - earlier.by_depth[depth];
  }
  return since;
}

// A handle. Reads and writes of handles of one file may go on side by side.
class FlatFile final : public File {
 public:
  FlatFile(FlatFileSystem& file_system, FlatFileSystem::Node& node, std::string path,
           OpenOptions options)
      : file_system_(file_system), node_(&node), path_(std::move(path)), options_(options) {
    ++node_->open_count;
  }
  ~FlatFile() override { LetGo(); }

  Task<Result<Bytes>> Read(IoContext io, Offset at, MutableView into) override;
  Task<Result<void>> Write(IoContext io, Offset at, ConstView from) override;
  Task<Result<void>> Sync(IoContext io, SyncKind) override { return file_system_.Flush(io); }
  Task<Result<void>> Truncate(Bytes size) override;
  Task<Result<void>> Allocate(Offset at, Bytes length) override;
  Task<Result<FileStatus>> Status() override { return file_system_.Status(path_); }
  Task<Result<void>> Advise(Advice) override { co_return Result<void>(); }
  Task<Result<void>> Close() override {
    LetGo();
    co_return Result<void>();
  }

 private:
  void LetGo() {
    if (node_ != nullptr) --node_->open_count;
    node_ = nullptr;
  }
  Result<void> CheckBlocks(std::string_view what, Offset at, Bytes length) const;

  FlatFileSystem& file_system_;
  FlatFileSystem::Node* node_;  // null once closed
  std::string path_;
  OpenOptions options_;
};

Result<void> FlatFile::CheckBlocks(std::string_view what, Offset at, Bytes length) const {
  const Bytes block = file_system_.geometry_.block_size;
  if (IsAligned(at, block) && IsAligned(length, block)) return {};
  return Fail(Errc::kInvalidArgument, path_,
              std::string(what) + " of " + FormatBytesExact(length) + " at byte " +
                  std::to_string(at.value()) + ": the volume takes whole blocks of " +
                  FormatBytesExact(block) + "; use sizes that are multiples of that");
}

Task<Result<Bytes>> FlatFile::Read(IoContext io, Offset at, MutableView into) {
  LABRACK_CHECK(node_ != nullptr);
  if (at.value() >= node_->size.count()) co_return Bytes(0);
  const Bytes length = std::min(Bytes(into.size()), node_->size - Bytes(at.value()));
  if (Result<void> whole = CheckBlocks("a read", at, length); !whole) {
    co_return std::unexpected(whole.error());
  }
  block::IoTally tally;
  io.priority = block::PriorityClass::kSyncRead;
  io.tally = &tally;
  Result<void> done = co_await file_system_.Transfer(io, *node_, at, into.first(length.size()));
  if (!done) co_return std::unexpected(done.error());
  file_system_.stats_.reads.Add(tally);
  co_return length;
}

Task<Result<void>> FlatFile::Write(IoContext io, Offset at, ConstView from) {
  LABRACK_CHECK(node_ != nullptr);
  const Bytes length(from.size());
  if (Result<void> whole = CheckBlocks("a write", at, length); !whole) co_return whole;
  if (at.value() > node_->size.count()) {
    co_return Fail(Errc::kUnsupported, path_,
                   "a write behind the end: files on a bare volume have no holes");
  }
  const Bytes end = Bytes(at.value()) + length;
  if (end > node_->size) {
    if (Result<void> grown = file_system_.Grow(*node_, path_, end); !grown) co_return grown;
  }
  block::IoTally tally;
  io.priority = block::PriorityClass::kSyncWrite;
  io.durable = io.durable || options_.data_sync;
  io.tally = &tally;
  Result<void> done = co_await file_system_.Transfer(io, *node_, at, from);
  if (done) file_system_.stats_.writes.Add(tally);
  co_return done;
}

Task<Result<void>> FlatFile::Truncate(Bytes size) {
  LABRACK_CHECK(node_ != nullptr);
  if (Result<void> whole = CheckBlocks("a cut", Offset(0), size); !whole) co_return whole;
  if (size > node_->size) {
    co_return Fail(Errc::kUnsupported, path_,
                   "cannot be made longer by Truncate: files on a bare volume have no holes");
  }
  file_system_.Shrink(*node_, size);
  co_return Result<void>();
}

// Space is taken, and the size stays: what was never written is not there to be read.
Task<Result<void>> FlatFile::Allocate(Offset at, Bytes length) {
  LABRACK_CHECK(node_ != nullptr);
  const Bytes size = node_->size;
  const Bytes end = Bytes(at.value()) + length;
  if (end <= size) co_return Result<void>();
  Result<void> grown = file_system_.Grow(*node_, path_, end);
  if (grown) node_->size = size;
  co_return grown;
}

FlatFileSystem::FlatFileSystem(block::BlockDevice& device)
    : device_(device), geometry_(device.geometry()), unit_(UnitOf(geometry_)) {
  for (std::uint64_t unit = 0; unit < geometry_.size / unit_; ++unit) {
    free_.insert(free_.end(), unit);
  }
}

FlatFileSystem::~FlatFileSystem() {
  for (const auto& [path, node] : files_) LABRACK_CHECK(node->open_count == 0);
}

FlatFileSystem::Piece FlatFileSystem::Locate(const Node& node, Offset at, Bytes length) const {
  const std::uint64_t first = at.value() / unit_.count();
  const std::uint64_t within = at.value() % unit_.count();
  Bytes there = unit_ - Bytes(within);
  for (std::uint64_t next = first + 1; there < length; ++next) {
    if (node.units[next] != node.units[next - 1] + 1) break;
    there += unit_;
  }
  return {.at = Offset(node.units[first] * unit_.count() + within),
          .length = std::min(there, length)};
}

Result<void> FlatFileSystem::Grow(Node& node, const std::string& path, Bytes size) {
  const std::uint64_t wanted = (size.count() + unit_.count() - 1) / unit_.count();
  const std::uint64_t missing = wanted > node.units.size() ? wanted - node.units.size() : 0;
  if (missing > free_.size()) {
    return Fail(Errc::kNoSpace, path,
                "does not fit: it needs " + FormatBytesExact(unit_ * missing) + " more, and " +
                    FormatBytesExact(unit_ * free_.size()) + " of the volume's " +
                    FormatBytesExact(geometry_.size) + " are free");
  }
  for (std::uint64_t i = 0; i < missing; ++i) {
    node.units.push_back(*free_.begin());
    free_.erase(free_.begin());
  }
  node.size = std::max(node.size, size);
  return {};
}

void FlatFileSystem::Shrink(Node& node, Bytes size) {
  const std::uint64_t kept = (size.count() + unit_.count() - 1) / unit_.count();
  while (node.units.size() > kept) {
    free_.insert(node.units.back());
    node.units.pop_back();
  }
  node.size = size;
}

Task<Result<void>> FlatFileSystem::Transfer(IoContext io, const Node& node, Offset at,
                                            MutableView into) {
  while (!into.empty()) {
    const Piece piece = Locate(node, at, Bytes(into.size()));
    Result<void> done = co_await device_.Read(io, piece.at, into.first(piece.length.size()));
    if (!done) co_return done;
    at += piece.length;
    into = into.subspan(piece.length.size());
  }
  co_return Result<void>();
}

Task<Result<void>> FlatFileSystem::Transfer(IoContext io, const Node& node, Offset at,
                                            ConstView from) {
  while (!from.empty()) {
    const Piece piece = Locate(node, at, Bytes(from.size()));
    Result<void> done = co_await device_.Write(io, piece.at, from.first(piece.length.size()));
    if (!done) co_return done;
    at += piece.length;
    from = from.subspan(piece.length.size());
  }
  co_return Result<void>();
}

Task<Result<void>> FlatFileSystem::Flush(IoContext io) {
  block::IoTally tally;
  io.tally = &tally;
  Result<void> done = co_await device_.Flush(io);
  if (!done && done.error().code() == Errc::kUnsupported) {
    ++stats_.flushes_refused;
    co_return Result<void>();
  }
  if (done) stats_.flushes.Add(tally);
  co_return done;
}

Task<Result<std::unique_ptr<File>>> FlatFileSystem::Open(std::string path, OpenOptions options) {
  auto found = files_.find(path);
  if (found == files_.end()) {
    if (!options.create) co_return std::unexpected(NoSuchFile(std::move(path)));
    found = files_.emplace(path, std::make_unique<Node>()).first;
  } else if (options.create && options.exclusive) {
    co_return Fail(Errc::kAlreadyExists, std::move(path), "is there already");
  }
  if (options.truncate) Shrink(*found->second, Bytes(0));
  co_return std::make_unique<FlatFile>(*this, *found->second, std::move(path), options);
}

Task<Result<FileStatus>> FlatFileSystem::Status(std::string path) {
  const auto found = files_.find(path);
  if (found == files_.end()) co_return std::unexpected(NoSuchFile(std::move(path)));
  co_return FileStatus{.size = found->second->size,
                       .allocated = unit_ * found->second->units.size(),
                       .is_directory = false};
}

Task<Result<void>> FlatFileSystem::MakeDirectory(std::string path) {
  co_return Fail(Errc::kUnsupported, std::move(path), "a bare volume has no directories");
}

Task<Result<void>> FlatFileSystem::Remove(std::string path) {
  const auto found = files_.find(path);
  if (found == files_.end()) co_return std::unexpected(NoSuchFile(std::move(path)));
  if (found->second->open_count > 0) {
    co_return Fail(Errc::kBusy, std::move(path), "is open; close it first");
  }
  Shrink(*found->second, Bytes(0));
  files_.erase(found);
  co_return Result<void>();
}

Task<Result<void>> FlatFileSystem::Rename(std::string from, std::string to) {
  const auto found = files_.find(from);
  if (found == files_.end()) co_return std::unexpected(NoSuchFile(std::move(from)));
  if (from == to) co_return Result<void>();
  if (files_.contains(to)) {
    if (Result<void> removed = co_await Remove(to); !removed) co_return removed;
  }
  auto node = files_.extract(found);
  node.key() = std::move(to);
  files_.insert(std::move(node));
  co_return Result<void>();
}

Task<Result<std::vector<std::string>>> FlatFileSystem::List(std::string path) {
  if (!path.empty() && path != ".") co_return std::unexpected(NoSuchFile(std::move(path)));
  std::vector<std::string> names;
  for (const auto& [name, node] : files_) names.push_back(name);
  co_return names;
}

Task<Result<void>> FlatFileSystem::SyncAll() { return Flush({}); }

Task<Result<SpaceStatus>> FlatFileSystem::Space() {
  co_return SpaceStatus{.total = unit_ * (geometry_.size / unit_), .free = unit_ * free_.size()};
}

}  // namespace labrack::fs
