#include "storage/volume/records.h"

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "storage/base/check.h"
#include "storage/base/crc64.h"
#include "storage/base/random.h"

namespace labrack::volume {
namespace {

constexpr std::uint64_t kMagic = 0x5445532d4b43424cULL;  // "LBCK-SET"
constexpr std::size_t kPadding = 4096;
constexpr std::size_t kLengthAt = 12;
constexpr std::size_t kHeaderSize = 56;
constexpr std::uint8_t kFlushModeCount = 3;

static_assert(std::endian::native == std::endian::little);

class Writer {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  void PutAt(std::size_t at, std::uint32_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads within bounds; the first thing that is wrong stays, and everything after it reads as zero.
class Reader {
 public:
  explicit Reader(ConstView bytes) : bytes_(bytes) {}

  template <typename T>
  T Get() {
    T value{};
    if (!error_.empty() || bytes_.size() - at_ < sizeof(value)) {
      Wrong("ends too early");
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  // An enum whose numbers run from `first` to `last`.
  template <typename T>
  T GetEnum(std::uint8_t first, std::uint8_t last, const char* what) {
    const auto number = Get<std::uint8_t>();
    if (number < first || number > last) {
      Wrong(std::string("has an unknown ") + what + " (" + std::to_string(number) + ")");
      return static_cast<T>(first);
    }
    return static_cast<T>(number);
  }
  std::size_t GetCount(std::size_t most, const char* what) {
    const auto count = Get<std::uint32_t>();
    if (count <= most) return count;
    Wrong("has " + std::to_string(count) + " " + what + "; at most " + std::to_string(most) +
          " are possible");
    return 0;
  }
  void Wrong(std::string what) {
    if (error_.empty()) error_ = std::move(what) + ", at byte " + std::to_string(at_);
  }
  void ExpectEnd() {
    if (at_ != bytes_.size()) Wrong("goes on after its end");
  }
  const std::string& error() const { return error_; }

 private:
  ConstView bytes_;
  std::size_t at_ = 0;
  std::string error_;
};

void PutVolume(Writer& out, const VolumeEntry& volume) {
  out.Put(volume.kind);
  out.Put(volume.flush_mode);
  out.Put(volume.read_policy);
  out.Put(volume.write_mode);
  out.Put(static_cast<std::uint8_t>(volume.parity_log));
  out.Put(volume.interlace.count());
  out.Put(volume.size.count());
  out.Put(volume.log_size.count());
  out.Put(static_cast<std::uint32_t>(volume.children.size()));
  for (const ChildEntry& child : volume.children) {
    out.Put(child.source);
    out.Put(child.state);
    out.Put(child.group);
    out.Put(child.index);
  }
}

VolumeEntry GetVolume(Reader& in) {
  VolumeEntry volume;
  volume.kind = in.GetEnum<Kind>(1, 4, "kind of volume");
  volume.flush_mode = in.GetEnum<block::FlushMode>(0, kFlushModeCount - 1, "flush mode");
  volume.read_policy = in.GetEnum<ReadPolicy>(0, kReadPolicyCount - 1, "read policy");
  volume.write_mode = in.GetEnum<WriteMode>(0, kWriteModeCount - 1, "write mode");
  volume.parity_log = in.GetEnum<ParityLogMode>(0, kParityLogModeCount - 1, "parity log");
  volume.interlace = Bytes(in.Get<std::uint64_t>());
  volume.size = Bytes(in.Get<std::uint64_t>());
  volume.log_size = Bytes(in.Get<std::uint64_t>());
  const std::size_t count = in.GetCount(kChildrenMax, "components of a volume");
  for (std::size_t i = 0; i < count; ++i) {
    ChildEntry& child = volume.children.emplace_back();
    child.source = in.GetEnum<ChildEntry::Source>(0, 2, "source of a component");
    child.state = in.GetEnum<State>(0, kStateCount - 1, "state of a component");
    child.group = in.Get<std::uint16_t>();
    child.index = in.Get<std::uint32_t>();
  }
  return volume;
}

SetRecord GetBody(Reader& in) {
  SetRecord record;
  const std::size_t disks = in.GetCount(kDisksMax, "disks");
  for (std::size_t i = 0; i < disks; ++i) {
    DiskEntry& disk = record.disks.emplace_back();
    disk.id = in.Get<std::uint64_t>();
    disk.size = Bytes(in.Get<std::uint64_t>());
    const auto voice = in.GetEnum<std::uint8_t>(0, 3, "voice of a disk");
    disk.counts = (voice & 1) != 0;
    disk.counted = (voice & 2) != 0;
  }
  const std::size_t volumes = in.GetCount(kVolumesMax, "volumes");
  for (std::size_t i = 0; i < volumes; ++i) record.volumes.push_back(GetVolume(in));
  const std::size_t spares = in.GetCount(kDisksMax, "spares");
  for (std::size_t i = 0; i < spares; ++i) record.spares.push_back(in.Get<std::uint32_t>());
  in.ExpectEnd();
  return record;
}

// Each disk and each volume is part of one thing at most.
class Uses {
 public:
  explicit Uses(const SetRecord& record)
      : disks_(record.disks.size()), volumes_(record.volumes.size()) {}
  void Disk(std::uint32_t index) { Use(disks_, index, disks_.size(), "disk "); }
  // By volume `by`: only what stands before it.
  void Volume(std::uint32_t index, std::size_t by) { Use(volumes_, index, by, "volume "); }
  const std::string& problems() const { return problems_; }

 private:
  void Use(std::vector<bool>& used, std::uint32_t index, std::size_t end, const char* what) {
    if (index >= end) {
      problems_ += std::string("; ") + what + std::to_string(index) + " is used but not there";
    } else if (used[index]) {
      problems_ += std::string("; ") + what + std::to_string(index) + " is used twice";
    } else {
      used[index] = true;
    }
  }
  std::vector<bool> disks_;
  std::vector<bool> volumes_;
  std::string problems_;
};

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kConcat:
      return "concat";
    case Kind::kStripe:
      return "stripe";
    case Kind::kMirror:
      return "mirror";
    case Kind::kRaid5:
      return "raid5";
  }
  return "unknown";
}

std::uint64_t DiskIdOf(std::uint64_t set_id, std::uint32_t number) {
  return Mix64(set_id ^ Mix64(number + std::uint64_t{1}));
}

Result<void> CheckRecord(const SetRecord& record) {
  Uses uses(record);
  for (std::size_t v = 0; v < record.volumes.size(); ++v) {
    for (const ChildEntry& child : record.volumes[v].children) {
      if (child.source == ChildEntry::Source::kDisk) uses.Disk(child.index);
      if (child.source == ChildEntry::Source::kVolume) uses.Volume(child.index, v);
    }
  }
  for (const std::uint32_t spare : record.spares) uses.Disk(spare);
  std::string problems = uses.problems();
  if (record.disks.empty() || record.disks.size() > kDisksMax) {
    problems += "; a set has 1 to " + std::to_string(kDisksMax) + " disks";
  }
  if (record.volumes.empty() || record.volumes.size() > kVolumesMax) {
    problems += "; a set has 1 to " + std::to_string(kVolumesMax) + " volumes";
  }
  for (const VolumeEntry& volume : record.volumes) {
    if (!volume.children.empty() && volume.children.size() <= kChildrenMax) continue;
    problems += "; a volume has 1 to " + std::to_string(kChildrenMax) + " components";
  }
  if (problems.empty()) return {};
  return Fail(Errc::kInvalidArgument, "set", problems.substr(2));
}

std::vector<std::byte> EncodeReplica(const Replica& replica, Offset at) {
  const SetRecord& record = replica.record;
  LABRACK_CHECK(replica.disk < record.disks.size());
  Writer out;
  out.Put(kMagic);
  out.Put(kRecordVersion);
  out.Put(std::uint32_t{0});  // the length
  out.Put(record.set_id);
  out.Put(record.generation);
  out.Put(replica.promised);
  out.Put(record.disks[replica.disk].id);
  out.Put(replica.disk);
  out.Put(std::uint32_t{0});
  LABRACK_CHECK(out.size() == kHeaderSize);
  out.Put(static_cast<std::uint32_t>(record.disks.size()));
  for (const DiskEntry& entry : record.disks) {
    out.Put(entry.id);
    out.Put(entry.size.count());
    out.Put(static_cast<std::uint8_t>((entry.counts ? 1 : 0) | (entry.counted ? 2 : 0)));
  }
  out.Put(static_cast<std::uint32_t>(record.volumes.size()));
  for (const VolumeEntry& volume : record.volumes) PutVolume(out, volume);
  out.Put(static_cast<std::uint32_t>(record.spares.size()));
  for (const std::uint32_t spare : record.spares) out.Put(spare);
  out.PutAt(kLengthAt, static_cast<std::uint32_t>(out.size()));
  out.Put(Crc64(out.bytes(), at.value()));
  std::vector<std::byte> bytes = std::move(out.bytes());
  bytes.resize((bytes.size() + kPadding - 1) / kPadding * kPadding);
  LABRACK_CHECK(bytes.size() <= kSlotSize.size());
  return bytes;
}

Result<Replica> DecodeReplica(ConstView slot, Offset at) {
  const std::string where = "state database at byte " + std::to_string(at.value());
  Reader header(slot);
  if (header.Get<std::uint64_t>() != kMagic) {
    return Fail(Errc::kNotFound, where, "there is none");
  }
  const auto version = header.Get<std::uint32_t>();
  const auto length = header.Get<std::uint32_t>();
  if (length < kHeaderSize || length > slot.size() - sizeof(std::uint64_t)) {
    return Fail(Errc::kCorrupt, where, "has a length of " + std::to_string(length));
  }
  Reader crc(slot.subspan(length));
  if (crc.Get<std::uint64_t>() != Crc64(slot.first(length), at.value())) {
    return Fail(Errc::kCorrupt, where, "does not check: it was torn, damaged or misplaced");
  }
  if (version != kRecordVersion) {
    return Fail(Errc::kUnsupported, where,
                "is of version " + std::to_string(version) + "; this build knows version " +
                    std::to_string(kRecordVersion));
  }
  const auto set_id = header.Get<std::uint64_t>();
  const auto generation = header.Get<std::uint64_t>();
  const auto promised = header.Get<std::uint64_t>();
  const auto disk_id = header.Get<std::uint64_t>();
  const auto disk = header.Get<std::uint32_t>();
  if (header.Get<std::uint32_t>() != 0) {
    return Fail(Errc::kCorrupt, where, "has something where nothing stands in this version");
  }
  Reader body(slot.subspan(kHeaderSize, length - kHeaderSize));
  Replica replica{.record = GetBody(body), .disk = disk, .promised = promised};
  if (!body.error().empty()) return Fail(Errc::kCorrupt, where, body.error());
  replica.record.set_id = set_id;
  replica.record.generation = generation;
  const Result<void> sound = CheckRecord(replica.record);
  if (!sound) return Fail(Errc::kCorrupt, where, sound.error().note());
  if (disk >= replica.record.disks.size() || replica.record.disks[disk].id != disk_id) {
    return Fail(Errc::kCorrupt, where, "does not know the disk that it is on");
  }
  return replica;
}

}  // namespace labrack::volume
