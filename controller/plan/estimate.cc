#include "controller/plan/estimate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "controller/plan/fio_job.h"
#include "controller/plan/stack_facts.h"

namespace labrack::plan {
namespace {

// Time that every trial takes whatever it does: process, claim, settle, collect.
constexpr Nanoseconds kTrialOverhead = std::chrono::milliseconds(300);
// What a command takes, when nothing is known about it.
constexpr Nanoseconds kExecAssumed = std::chrono::seconds(10);
constexpr Nanoseconds kStopDefault = std::chrono::seconds(10);
// A small file takes whole blocks, and an inode.
constexpr std::uint64_t kFileBlock = 4096;
constexpr std::uint64_t kInode = 1024;

// No estimate is longer than ten years or larger than 2^60 bytes: sums over a plan stay in range.
constexpr double kSecondsMax = 315e6;
constexpr double kBytesMax = 1152921504606846976.0;

Nanoseconds Seconds(double seconds) {
  return Nanoseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, kSecondsMax) * 1e9));
}
double ToSeconds(Nanoseconds duration) { return static_cast<double>(duration.count()) * 1e-9; }
Bytes ToBytes(double bytes) {
  return Bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, kBytesMax)));
}

double StreamSeconds(double bytes) { return bytes / kAssumedDisk.stream_bytes_per_second; }
double VerifySeconds(v1::Verify verify, double bytes) {
  return verify == v1::VERIFY_NONE ? 0 : bytes / kAssumedDisk.verify_bytes_per_second;
}

struct Sums {
  double written = 0;
  double footprint = 0;
  double seconds = 0;
};

Sums Stream(const v1::StreamWorkload& stream) {
  const double bytes = static_cast<double>(stream.file()) * stream.clients();
  const bool reads = stream.direction() == v1::DIRECTION_READ;
  double seconds = StreamSeconds(bytes) * (reads ? 2 : 1) + VerifySeconds(stream.verify(), bytes);
  if (!reads && stream.sync() == v1::STREAM_SYNC_EACH) {
    const double writes = bytes / static_cast<double>(std::max<std::uint64_t>(1, stream.block()));
    seconds += writes * ToSeconds(kAssumedDisk.sync_operation) /
               std::min<double>(stream.clients(), kAssumedDisk.parallel_sync_max);
  }
  return {bytes, bytes, seconds};
}

Sums Copy(const v1::CopyWorkload& copy) {
  const double bytes = static_cast<double>(copy.file());
  // Laid out once, read and written once.
  return {2 * bytes, 2 * bytes, StreamSeconds(3 * bytes) + VerifySeconds(copy.verify(), bytes)};
}

Sums Checksum(const v1::ChecksumWorkload& checksum) {
  const double bytes = static_cast<double>(checksum.file());
  const double laid_out = checksum.holes() ? 0 : bytes;
  return {laid_out, laid_out, StreamSeconds(laid_out + bytes)};
}

// Seconds and operations of a closed or open loop until the first of its stop rules.
struct Loop {
  double seconds = 0;
  double operations = 0;
};
Loop RunLoop(const v1::StopRule& stop, double rate, double block) {
  const bool any = stop.duration() > 0 || stop.operations() > 0 || stop.bytes() > 0;
  double seconds = any ? kSecondsMax : ToSeconds(kStopDefault);
  if (stop.duration() > 0) seconds = std::min(seconds, ToSeconds(Nanoseconds(stop.duration())));
  if (stop.operations() > 0) {
    seconds = std::min(seconds, static_cast<double>(stop.operations()) / rate);
  }
  if (stop.bytes() > 0)
    seconds = std::min(seconds, static_cast<double>(stop.bytes()) / block / rate);
  return {seconds, seconds * rate};
}

Sums RandomBlocks(const v1::RandomWorkload& random) {
  const double file = static_cast<double>(random.file());
  const double block = static_cast<double>(std::max<std::uint64_t>(1, random.block()));
  const double write_share = 1 - random.read();
  const double at_once = static_cast<double>(random.clients()) * random.depth();
  const double parallel = random.sync() && write_share > 0
                              ? std::min(at_once, kAssumedDisk.parallel_sync_max)
                              : at_once;
  const double each = ToSeconds(kAssumedDisk.random_operation) +
                      ToSeconds(Nanoseconds(random.think())) +
                      (random.sync() ? write_share * ToSeconds(kAssumedDisk.sync_operation) : 0);
  double rate = std::min({parallel / each, kAssumedDisk.operations_per_second_max,
                          2 * kAssumedDisk.stream_bytes_per_second / block});
  if (random.rate() > 0) rate = std::min(rate, random.rate());
  const Loop loop = RunLoop(random.stop(), std::max(rate, 1e-3), block);
  const double warmup = ToSeconds(Nanoseconds(random.warmup()));
  const double written = (loop.operations + rate * warmup) * block * write_share;
  return {file + written, file,
          StreamSeconds(file) + warmup + loop.seconds + VerifySeconds(random.verify(), file)};
}

Sums SyncPages(const v1::SyncPagesWorkload& pages) {
  const double file = static_cast<double>(pages.file());
  const double seconds = ToSeconds(Nanoseconds(pages.duration()) + Nanoseconds(pages.warmup()));
  const double rate = std::min<double>(pages.clients(), kAssumedDisk.parallel_sync_max) /
                      ToSeconds(kAssumedDisk.sync_operation);
  return {file + seconds * rate * static_cast<double>(pages.size()), file,
          StreamSeconds(file) + seconds + VerifySeconds(pages.verify(), file)};
}

Sums Files(const v1::FilesWorkload& files) {
  const double count = files.files();
  const double bytes = count * static_cast<double>(files.size());
  const double blocks =
      static_cast<double>((files.size() + kFileBlock - 1) / kFileBlock * kFileBlock + kInode);
  const double parallel = std::min<double>(files.clients(), kAssumedDisk.parallel_sync_max);
  const double create = ToSeconds(kAssumedDisk.small_file) +
                        (files.fsync() ? ToSeconds(kAssumedDisk.sync_operation) : 0);
  const double lookups = files.steps_size() == 0 ? 3 : files.steps_size();
  return {bytes, count * blocks,
          count * (create + lookups * ToSeconds(kAssumedDisk.small_file)) / parallel +
              StreamSeconds(2 * bytes)};
}

bool Given(const FioJob& job, std::string_view key) {
  const std::string* value = job.Find(key);
  return value != nullptr && *value != "0";
}

// Size of one job's files; 256 MiB is taken where the job gives a share ("20%") or nothing.
double FioSize(const FioJob& job, std::string_view key, double otherwise) {
  const std::string* text = job.Find(key);
  const std::optional<Bytes> size = text == nullptr ? std::nullopt : ParseFioSize(*text);
  return size ? static_cast<double>(size->count()) : otherwise;
}

Sums FioJobSums(const FioJob& job) {
  const double copies = std::max(1.0, FioSize(job, "numjobs", 1));
  const double size = FioSize(job, "size", FioSize(job, "filesize", 256.0 * 1024 * 1024)) * copies;
  double moved = FioSize(job, "io_size", size / copies) * copies * FioSize(job, "loops", 1);
  const std::string* mode = job.Find("rw");
  if (mode == nullptr) mode = job.Find("readwrite");
  const bool reads_only = mode == nullptr || mode->starts_with("read") || *mode == "randread";
  const bool mixed = !reads_only && (mode->starts_with("rw") || mode->starts_with("randrw"));
  double seconds = StreamSeconds(moved);
  const std::string* runtime = job.Find("runtime");
  const std::optional<Nanoseconds> limit =
      runtime == nullptr ? std::nullopt : ParseFioTime(*runtime);
  if (limit && (Given(job, "time_based") || ToSeconds(*limit) < seconds)) {
    seconds = ToSeconds(*limit);
    moved = seconds * kAssumedDisk.stream_bytes_per_second;
  }
  const double written = reads_only ? 0 : mixed ? moved / 2 : moved;
  const double laid_out = reads_only || mixed ? size : 0;
  return {laid_out + written, size, StreamSeconds(laid_out) + seconds};
}

Sums Fio(const v1::FioWorkload& fio) {
  Sums sums;
  for (const FioJob& job : ParseFioJob(fio.job()).jobs) {
    const Sums one = FioJobSums(job);
    sums.written += one.written;
    sums.footprint += one.footprint;
    sums.seconds += one.seconds;
  }
  sums.seconds = std::min(sums.seconds, ToSeconds(Nanoseconds(fio.timeout())));
  return sums;
}

Sums Estimate(const v1::Workload& workload) {
  switch (workload.kind_case()) {
    case v1::Workload::kStream:
      return Stream(workload.stream());
    case v1::Workload::kCopy:
      return Copy(workload.copy());
    case v1::Workload::kChecksum:
      return Checksum(workload.checksum());
    case v1::Workload::kRandom:
      return RandomBlocks(workload.random());
    case v1::Workload::kSyncPages:
      return SyncPages(workload.sync_pages());
    case v1::Workload::kFiles:
      return Files(workload.files());
    case v1::Workload::kFio:
      return Fio(workload.fio());
    case v1::Workload::kExec:
      return {0, 0, ToSeconds(std::min(kExecAssumed, Nanoseconds(workload.exec().timeout())))};
    case v1::Workload::KIND_NOT_SET:
      return {};
  }
  return {};
}

}  // namespace

WorkEstimate EstimateWork(const v1::Workload& workload) {
  const Sums sums = Estimate(workload);
  return {ToBytes(sums.written), ToBytes(sums.footprint), Seconds(sums.seconds),
          !workload.has_exec()};
}

Bytes EstimatePreparation(const v1::Stack& stack, const v1::Disks& disks) {
  const bool written = UsesLentDisks(stack, disks) && disks.kind() == v1::DISK_KIND_FILE &&
                       disks.prepare() != v1::DISK_PREPARATION_ALLOCATED;
  return written ? Bytes(disks.size()) * DisksUsed(stack, disks) : Bytes(0);
}

Nanoseconds EstimatePreparationTime(const v1::Stack& stack, const v1::Disks& disks) {
  return Seconds(StreamSeconds(static_cast<double>(EstimatePreparation(stack, disks).count())));
}

Nanoseconds OnModels(Nanoseconds virtual_time) {
  constexpr int kTimesFaster = 20;  // one client on a slow disk; many on a fast one take longer
  return virtual_time / kTimesFaster;
}

Nanoseconds EstimateStack(const v1::Stack& stack, const v1::Disks& disks) {
  const Nanoseconds preparation = EstimatePreparationTime(stack, disks);
  if (stack.has_volume()) return preparation + kTrialOverhead;
  switch (stack.host().kind_case()) {
    case v1::HostStack::kExt4:
    case v1::HostStack::kXfs:
    case v1::HostStack::kBtrfs:
      return preparation + kTrialOverhead + std::chrono::milliseconds(500);
    case v1::HostStack::kZfs:
      return preparation + kTrialOverhead + std::chrono::seconds(2);
    case v1::HostStack::kDir:
    case v1::HostStack::KIND_NOT_SET:
      return kTrialOverhead;
  }
  return kTrialOverhead;
}

}  // namespace labrack::plan
