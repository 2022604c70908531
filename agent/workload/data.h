// What workloads write: seeded data that no stack can compress or share, and that tells on
// read-back what went wrong. The content of a file is cut into sectors of 512 bytes; a sector is a
// function of (seed, file, its number, generation):
//
//   word 0      B(sector ^ key)                      B: a bijection of 64 bits
//   word 1      B((file << 32 | generation) ^ word 0)
//   words 2-7   Mix64 of words 0 and 1               8 words, the states of 8 xorshift generators
//   words 8-63  the generators' next 7 steps         8 lanes side by side, so that it vectorises
//
// Words 0 and 1 can be undone, so that a sector found in a wrong place says where it belongs and
// how old it is; the other words follow from them, so that a sector that was hit in part does not
// pass. Every word looks random, also beside its neighbours (J. G. Marsaglia, "Xorshift RNGs",
// 2003).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "labrack/v1/workload.pb.h"
#include "storage/base/bytes.h"
#include "storage/base/random.h"

namespace labrack::workload {

constexpr Bytes kSector = 512_B;

// Which of a workload's files; part of the content.
struct FileId {
  std::uint32_t value = 0;
};

// How often a place has been written; 0 is what lay-out writes.
struct Generation {
  std::uint32_t value = 0;
  friend bool operator==(Generation, Generation) = default;
};

// The first difference between what should be there and what is.
struct Mismatch {
  Offset at;         // of the first wrong byte, in the file
  std::string what;  // "holds generation 3 of this place, expected 5 (a write was lost)"
};

class Data {
 public:
  Data(Seed seed, v1::DataKind kind);

  v1::DataKind kind() const { return kind_; }

  // Fills `into` with the content from `at` on, which is a multiple of kSector; the length is free.
  void Fill(FileId file, Offset at, Generation generation, MutableView into) const;

  // Compares; nullopt when all is right. `at` as for Fill.
  std::optional<Mismatch> Compare(FileId file, Offset at, Generation generation,
                                  ConstView got) const;

 private:
  struct Origin {
    std::uint64_t sector;
    FileId file;
    Generation generation;
  };

  void FillSector(FileId file, std::uint64_t sector, Generation generation,
                  std::uint64_t* words) const;
  // Whose sector this is; nullopt when it is nobody's.
  std::optional<Origin> Identify(const std::uint64_t* words) const;
  std::string Explain(FileId file, std::uint64_t sector, Generation generation,
                      ConstView got) const;

  std::uint64_t key_;
  v1::DataKind kind_;
};

}  // namespace labrack::workload
