#include "storage/block/disk/presets.h"

#include <string>
#include <utility>

namespace labrack::block {
namespace {

constexpr std::int64_t k7200Rpm = 8'333'333;  // ns per revolution
constexpr std::int64_t k10025Rpm = 5'985'037;
constexpr std::int64_t k15000Rpm = 4'000'000;

// IBM 18ES (DNES-309170W) with twice the surfaces, as its 18 GB sibling has them.
MechanicsOptions Ibm18EsMechanics() {
  MechanicsOptions disk;
  disk.revolution_ns = k7200Rpm;
  disk.surfaces = 10;                            // [C] 5 of the 9 GB drive, doubled [K]
  disk.zones = EvenZones(11'474, 390, 247, 11);  // [C] cylinders, sectors; 11 zones [G]
  disk.seek = {.knee_cylinders = 700,            // [C] average of reads 7.2 ms
               .near_base_ns = 1'318'000,
               .near_sqrt_ns = 144'700,
               .far_base_ns = 4'462'000,
               .far_linear_ps = 745'000};
  disk.head_switch_ns = 62'000;    // [C]
  disk.write_settle_ns = 126'000;  // [C] measured; data sheets of such drives say 0.7 ms
  // [G] so that 24.0 to 15.2 MB/s of the medium give 20.5 to 13.0 MB/s sustained [C].
  disk.track_skew_ns = 1'360'000;
  disk.cylinder_skew_ns = 1'670'000;
  return disk;
}

DiskPreset E450At7200() {
  RotatingDiskOptions disk;
  disk.mechanics = Ibm18EsMechanics();
  disk.read_command_ns = 220'000;           // [C] the middle of 0.07 to 0.37 ms, of several drives
  disk.write_command_ns = 695'000;          // [C] the middle of 0.34 to 1.05 ms
  disk.queue_depth = 64;                    // [K] tags; the host sends 35 at most
  disk.scheduler = DiskScheduler::kSatf;    // [K]
  disk.cache_segments = 7;                  // [C]
  disk.segment_size = Bytes(511 * 512);     // [C]
  disk.write_cache = WriteCacheMode::kOff;  // [K] as a server's SCSI disks were delivered
  return {.name = "e450-7200",
          .summary = "Sun E450 of 2000: 18 GB SCSI, 7200 rpm, write cache off, 40 MB/s per 4 disks",
          .disk = disk,
          .bus = {.bytes_per_second = 40'000'000, .arbitration_ns = 20'000},  // [K] UltraSCSI
          .disks_per_bus = 4};                                                // [K]
}

// Quantum Atlas 10K with twice the surfaces.
MechanicsOptions Atlas10kMechanics() {
  MechanicsOptions disk;
  disk.revolution_ns = k10025Rpm;
  disk.surfaces = 12;                            // [C] 6 of the 9 GB drive, doubled [K]
  disk.zones = EvenZones(10'042, 334, 229, 11);  // [C]; 11 zones [G]
  disk.seek = {.knee_cylinders = 1500,           // [C] average of reads 5.6 ms
               .near_base_ns = 1'293'000,
               .near_sqrt_ns = 83'800,
               .far_base_ns = 3'295'000,
               .far_linear_ps = 727'000};
  disk.head_switch_ns = 176'000;   // [C]
  disk.write_settle_ns = 487'000;  // [C] average of writes 6.1 ms
  // [G] so that 28.6 to 19.6 MB/s of the medium give 23.5 to 16.1 MB/s sustained [C].
  disk.track_skew_ns = 1'168'000;
  disk.cylinder_skew_ns = 1'950'000;
  return disk;
}

DiskPreset E450At10k() {
  DiskPreset preset = E450At7200();
  RotatingDiskOptions& disk = std::get<RotatingDiskOptions>(preset.disk);
  disk.mechanics = Atlas10kMechanics();
  disk.cache_segments = 10;              // [C]
  disk.segment_size = Bytes(374 * 512);  // [C]
  preset.name = "e450-10k";
  preset.summary = "Sun E450 of 2000: 18 GB SCSI, 10025 rpm, write cache off, 40 MB/s per 4 disks";
  return preset;
}

// Of a 73 GB drive of the class of 2003: 3.6/4.0 ms, 75 to 50 MB/s sustained [K].
MechanicsOptions Fc15kMechanics() {
  MechanicsOptions disk;
  disk.revolution_ns = k15000Rpm;
  disk.surfaces = 8;                             // [K]
  disk.zones = EvenZones(31'800, 676, 450, 16);  // [G] from capacity and rates
  disk.seek = {.knee_cylinders = 6360,           // [G] through 0.2, 3.6 and 7.2 ms [K]
               .near_base_ns = 163'301,
               .near_sqrt_ns = 36'699,
               .far_base_ns = 2'062'523,
               .far_linear_ps = 161'556};
  disk.head_switch_ns = 200'000;    // [K]
  disk.write_settle_ns = 400'000;   // [K] 4.0 less 3.6 ms
  disk.track_skew_ns = 610'000;     // [G] the shortest that there can be, about
  disk.cylinder_skew_ns = 700'000;  // [G]
  return disk;
}

DiskPreset Fc15k73() {
  RotatingDiskOptions disk;
  disk.mechanics = Fc15kMechanics();
  disk.read_command_ns = 100'000;           // [K]
  disk.write_command_ns = 150'000;          // [K]
  disk.queue_depth = 128;                   // [K]
  disk.scheduler = DiskScheduler::kSatf;    // [K]
  disk.cache_segments = 32;                 // [G] of 8 MB [K]
  disk.segment_size = 256_KiB;              // [G]
  disk.write_cache = WriteCacheMode::kOff;  // [K]
  return {
      .name = "fc15k-73",
      .summary = "73 GB Fibre Channel of 2003, 15000 rpm, write cache off, 200 MB/s per 12 disks",
      .disk = disk,
      .bus = {.bytes_per_second = 200'000'000, .arbitration_ns = 5'000},  // [K] 2 Gb/s loop
      .disks_per_bus = 12};                                               // [S] one enclosure
}

// Seagate Barracuda 7200.7, class of ST3120026A.
MechanicsOptions Barracuda72007Mechanics() {
  MechanicsOptions disk;
  disk.revolution_ns = k7200Rpm;
  disk.surfaces = 3;                              // [D]
  disk.zones = EvenZones(86'500, 1164, 642, 16);  // [G] from 120 GB and 58 to 32 MB/s [D]
  disk.seek = {.knee_cylinders = 17'300,          // [G] through 1.0 [K], 8.5 [D], 17.5 ms [K]
               .near_base_ns = 953'827,
               .near_sqrt_ns = 46'173,
               .far_base_ns = 4'408'618,
               .far_linear_ps = 151'345};
  disk.head_switch_ns = 800'000;      // [K]
  disk.write_settle_ns = 1'000'000;   // [D] 9.5 less 8.5 ms
  disk.track_skew_ns = 1'850'000;     // [G] the shortest that there can be, about
  disk.cylinder_skew_ns = 2'100'000;  // [G]
  return disk;
}

DiskPreset Ide120() {
  RotatingDiskOptions disk;
  disk.mechanics = Barracuda72007Mechanics();
  disk.read_command_ns = 200'000;                 // [K]
  disk.write_command_ns = 200'000;                // [K]
  disk.queue_depth = 1;                           // [K] no tagged queueing
  disk.cache_segments = 16;                       // [G] half of 8 MB [D]
  disk.segment_size = 256_KiB;                    // [G]
  disk.write_cache = WriteCacheMode::kWriteBack;  // [K] as desktop disks are delivered
  disk.write_cache_size = 4_MiB;                  // [G] the other half
  disk.write_back_max = 256_KiB;                  // [G]
  disk.write_back_idle_ns = 2'000'000;            // [G]
  return {.name = "ide-120",
          .summary = "120 GB IDE of 2004, 7200 rpm, write cache on, no queueing",
          .disk = disk,
          .bus = {.bytes_per_second = 80'000'000, .arbitration_ns = 5'000}};  // [K] UDMA, 60 to 90
}

// A LUN of a disk array: a cache that survives a power cut, in front of a RAID group.
DiskPreset CxLun() {
  ControllerDiskOptions lun;
  lun.size = Bytes(292'000'000'000 / 4096 * 4096);  // [G] RAID-5 of 4+1 fc15k-73
  lun.queue_depth = 256;                            // [K] of a port
  lun.read_command_ns = 400'000;                    // [K] 0.4 to 1 ms for a hit
  lun.write_command_ns = 700'000;                   // [K] likewise, mirrored to the other processor
  lun.read_interval_ns = 50'000;                    // [G] 20,000 commands per second
  lun.write_interval_ns = 100'000;                  // [G]
  lun.units = 5;                                    // [G]
  lun.chunk = 64_KiB;                               // [K]
  lun.spindle = Fc15kMechanics();
  lun.chunk_write_ns = 1'400'000;      // [G] 60 MB/s of a spindle, and the parity of four
  lun.part_write_min_ns = 12'000'000;  // [G] four I/Os of 3 ms each, sorted
  lun.buffer = 1_GiB;                  // [G] of up to 4 GB of a processor's memory [D]
  lun.buffer_safe = true;              // [D] mirrored, and saved on a power failure
  lun.flush_ns = 0;                    // [K] the cache need not be flushed
  lun.read_segments = 32;              // [G]
  lun.segment_size = 1_MiB;            // [G]
  return {.name = "cx-lun",
          .summary = "LUN of an EMC CX of 2006: RAID-5 of 4+1, mirrored write cache, 2 Gb/s FC",
          .disk = lun,
          .bus = {.bytes_per_second = 190'000'000, .arbitration_ns = 5'000}};  // [K]
}

DiskPreset StorEdge3510Lun() {
  DiskPreset preset = CxLun();
  ControllerDiskOptions& lun = std::get<ControllerDiskOptions>(preset.disk);
  lun.size = Bytes(438'000'000'000 / 4096 * 4096);  // [S] RAID-10 of 12 disks of 73 GB
  lun.units = 12;                                   // [S]
  lun.chunk = 32_KiB;                               // [S]
  lun.chunk_write_ns = 1'100'000;                   // [G] 60 MB/s of a spindle, on both sides
  lun.part_write_min_ns = 6'000'000;                // [G] two I/Os of 3 ms each, sorted
  preset.name = "3510-lun";
  preset.summary = "LUN of a Sun StorEdge 3510 of 2005: RAID-10 of 12, 1 GB NVRAM, 2 Gb/s FC";
  return preset;
}

DiskPreset SataHdd() {
  MechanicsOptions mechanics;
  mechanics.revolution_ns = k7200Rpm;
  mechanics.surfaces = 16;                               // [K] 8 platters
  mechanics.zones = EvenZones(427'000, 4695, 2167, 16);  // [G] 12 TB at 260 to 120 MB/s [K]
  mechanics.seek = {.knee_cylinders = 85'400,            // [G] through 0.5, 8.0 and 16.5 ms [K]
                    .near_base_ns = 478'768,
                    .near_sqrt_ns = 21'232,
                    .far_base_ns = 4'229'323,
                    .far_linear_ps = 28'737};
  mechanics.head_switch_ns = 300'000;      // [K]
  mechanics.write_settle_ns = 500'000;     // [K] 8.5 less 8.0 ms
  mechanics.track_skew_ns = 900'000;       // [G] the shortest that there can be, about
  mechanics.cylinder_skew_ns = 1'100'000;  // [G]
  RotatingDiskOptions disk;
  disk.mechanics = mechanics;
  disk.read_command_ns = 50'000;                  // [K]
  disk.write_command_ns = 50'000;                 // [K]
  disk.queue_depth = 32;                          // [K] NCQ
  disk.scheduler = DiskScheduler::kSatf;          // [K]
  disk.cache_segments = 64;                       // [G] half of 256 MB [K]
  disk.segment_size = 2_MiB;                      // [G]
  disk.write_cache = WriteCacheMode::kWriteBack;  // [K]
  disk.write_cache_size = 128_MiB;                // [G] the other half
  disk.write_back_max = 1_MiB;                    // [G]
  disk.write_back_idle_ns = 2'000'000;            // [G]
  return {.name = "sata-hdd",
          .summary = "12 TB SATA disk of today, 7200 rpm, NCQ, write cache on",
          .disk = disk,
          .bus = {.bytes_per_second = 550'000'000, .arbitration_ns = 1'000}};  // [K] 6 Gb/s
}

DiskPreset SataSsd(bool protected_buffer) {
  ControllerDiskOptions disk;
  disk.size = Bytes(480'000'000'000 / 4096 * 4096);  // [K]
  disk.queue_depth = 32;                             // [K] NCQ
  disk.read_command_ns = 25'000;    // [G] with the die's 55 us: 80 to 100 us of a read [K]
  disk.write_command_ns = 35'000;   // [K] 30 to 60 us of a write
  disk.read_interval_ns = 11'111;   // [K] 90,000 per second
  disk.write_interval_ns = 12'500;  // [K] 80,000
  disk.units = 32;                  // [K] 8 channels of 4 dies
  disk.chunk = 16_KiB;              // [K] a page of flash
  disk.chunk_read_ns = 55'000;      // [K]
  disk.chunk_write_ns = 1'028'000;  // [G] 510 MB/s of all dies [K]
  disk.buffer = 32_MiB;             // [G]
  disk.buffer_safe = protected_buffer;
  disk.flush_ns = protected_buffer ? 50'000 : 2'000'000;  // [G]
  return {.name = protected_buffer ? "sata-ssd-plp" : "sata-ssd",
          .summary = protected_buffer ? "480 GB SATA SSD of today, with power-loss protection"
                                      : "480 GB SATA SSD of today, without power-loss protection",
          .disk = disk,
          .bus = {.bytes_per_second = 550'000'000, .arbitration_ns = 1'000}};  // [K] 6 Gb/s
}

DiskPreset Nvme(bool protected_buffer) {
  ControllerDiskOptions disk;
  disk.size = Bytes(1'920'000'000'000 / 4096 * 4096);  // [K]
  disk.queue_depth = ControllerDisk::kQueueDepthMax;   // [K] 64 k
  disk.read_command_ns = 15'000;   // [G] with the die's 60 us: 70 to 90 us of a read [K]
  disk.write_command_ns = 12'000;  // [K] 10 to 20 us of a write
  disk.read_interval_ns = 1'000;   // [K] 1 M per second
  disk.write_interval_ns = 2'000;  // [K] 0.5 M
  disk.units = 128;                // [K] 16 channels of 8 dies
  disk.chunk = 16_KiB;             // [K] a page of flash
  disk.chunk_read_ns = 60'000;     // [K]
  disk.chunk_write_ns = 419'000;   // [G] 5000 MB/s of all dies [K]
  disk.buffer = 64_MiB;            // [G]
  disk.buffer_safe = protected_buffer;
  disk.flush_ns = protected_buffer ? 10'000 : 2'000'000;  // [K]
  return {.name = protected_buffer ? "nvme-plp" : "nvme",
          .summary = protected_buffer ? "1.92 TB NVMe SSD of today, with power-loss protection"
                                      : "1.92 TB NVMe SSD of today, without power-loss protection",
          .disk = disk,
          .bus = {.bytes_per_second = 7'000'000'000, .arbitration_ns = 0}};  // [K] PCIe 4 x4
}

Result<std::unique_ptr<ModelDisk>> MakeOne(runtime::Reactor& reactor, const DiskPreset& preset,
                                           Bytes size, Random& random, Bus& bus) {
  if (const auto* controller = std::get_if<ControllerDiskOptions>(&preset.disk)) {
    ControllerDiskOptions options = *controller;
    if (size > options.size) {
      return Fail(Errc::kInvalidArgument, std::string(preset.name),
                  "has " + std::to_string(options.size.count()) + " bytes, no more");
    }
    if (size > Bytes(0)) options.size = size;
    return ControllerDisk::Create(reactor, std::move(options), bus);
  }
  RotatingDiskOptions options = std::get<RotatingDiskOptions>(preset.disk);
  options.size = size;
  const auto revolution = static_cast<std::uint64_t>(options.mechanics.revolution_ns);
  options.phase_ns = static_cast<std::int64_t>(random.Below(revolution));
  return RotatingDisk::Create(reactor, std::move(options), bus);
}

}  // namespace

const std::vector<DiskPreset>& DiskPresets() {
  static const std::vector<DiskPreset> presets = {
      E450At7200(), E450At10k(),    Fc15k73(),     Ide120(),    CxLun(),   StorEdge3510Lun(),
      SataHdd(),    SataSsd(false), SataSsd(true), Nvme(false), Nvme(true)};
  return presets;
}

Result<DiskPreset> FindDiskPreset(std::string_view name) {
  std::string known;
  for (const DiskPreset& preset : DiskPresets()) {
    if (preset.name == name) return preset;
    known += (known.empty() ? "" : ", ") + std::string(preset.name);
  }
  return Fail(Errc::kInvalidArgument, std::string(name),
              "no such modelled disk; there are " + known);
}

Result<ModelledDisks> MakeModelledDisks(runtime::Reactor& reactor, const DiskPreset& preset,
                                        const ModelledDisksOptions& options) {
  ModelledDisks made;
  Random random(Derive(options.seed, preset.name));
  for (std::uint32_t i = 0; i < options.count; ++i) {
    if (i % preset.disks_per_bus == 0) made.buses.push_back(std::make_unique<Bus>(preset.bus));
    Result<std::unique_ptr<ModelDisk>> disk =
        MakeOne(reactor, preset, options.size, random, *made.buses.back());
    if (!disk) return std::unexpected(disk.error());
    made.disks.push_back(std::move(*disk));
  }
  return made;
}

}  // namespace labrack::block
