// A RAID-5 on simulated disks through several lives: clients write, read and flush, a disk or a
// sector is lost, a spare is rebuilt, the power is cut, and all is assembled again. One seed draws
// everything; the first thing that is wrong is told.
//
//   life:  assemble -> verify all -> clients | saboteur | rebuild | power cut -> close
//
// What may be wrong is what the log's mode allows: with partial parities, and a column missing at
// assembly, the blocks of that column which were being written at the cut.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/runtime/sim_reactor.h"
#include "storage/volume/raid5.h"
#include "tests/sim/block_model.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/volume_client.h"

namespace labrack::sim {

struct Raid5Case {
  std::size_t columns = 4;
  volume::Raid5Options options;
  std::size_t log_slots = 4;
  std::uint64_t lines = 12;
  bool volatile_cache = true;
  bool durable_writes = false;  // all of them
  std::size_t lives = 3;
  std::size_t clients = 3;
  std::size_t ops = 30;  // of each client, in each life
  bool cuts = true;
  bool lose_disk_after_cut = false;
  bool lose_disk = false;
  bool lose_sectors = false;
  bool rebuild = false;
  bool old_disk_is_spare = false;  // with what it held when it was lost

  std::string ToString() const;
};

// Draws the case too; of `mode`, or of any.
Raid5Case DrawRaid5Case(Random& random, std::optional<volume::ParityLogMode> mode);

class Raid5World {
 public:
  Raid5World(const Raid5Case& drawn, Seed seed);

  // What is wrong, or nothing.
  std::optional<std::string> Run();
  // Blocks that were being written at a cut may hold anything afterwards, in every mode.
  void ForgiveInFlight() { forgive_ = true; }
  std::uint64_t trace_hash() const { return reactor_.trace_hash(); }
  // Assemblies that were refused since a column was missing and parity could be wrong.
  std::size_t refused_count() const { return refused_count_; }

 private:
  Task<void> Live();
  Task<Result<void>> Assemble();
  Task<void> OneLife(bool cut);
  Task<void> VerifyAll();
  Task<void> Client(Seed seed);
  Task<void> Write(std::size_t first, std::size_t count);
  Task<void> ReadBlocks(std::size_t first, std::size_t count);
  Task<void> Sabotage(Seed seed);
  Task<void> CutPower(Nanoseconds after);
  Task<void> RebuildIfMissing();
  void PowerOn();
  void Blame(std::string what);
  std::size_t ColumnOf(std::size_t block) const;

  Raid5Case case_;
  runtime::SimReactor reactor_;
  Random random_;
  std::vector<std::unique_ptr<SimDisk>> disks_;  // the last is the spare
  std::vector<std::size_t> disk_of_;             // of each column
  SimLedger ledger_;
  std::unique_ptr<volume::Raid5> volume_;
  BlockModel model_;
  std::set<std::size_t> in_flight_;    // blocks that were being written at the last cut
  std::optional<std::size_t> faulty_;  // the one column that may have faults
  bool forgive_ = false;
  bool off_ = false;
  bool over_ = false;  // refused, as it should be
  std::size_t refused_count_ = 0;
  std::optional<std::string> wrong_;
};

// Runs one drawn case.
std::optional<std::string> RunRaid5Seed(Seed seed, std::optional<volume::ParityLogMode> mode);

}  // namespace labrack::sim
