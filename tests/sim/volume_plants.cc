// The simulations of mirrors and sets, with the planted fault that LABRACK_PLANT names switched on.
// Run by volume_plant_test, and by hand.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "storage/base/plant.h"

namespace labrack {
namespace {

constexpr struct {
  const char* name;
  Plant plant;
} kPlants[] = {{"DirtyMarkSkipped", Plant::kDirtyMarkSkipped},
               {"DirtyClearedEarly", Plant::kDirtyClearedEarly},
               {"UnsyncedReadAnywhere", Plant::kUnsyncedReadAnywhere},
               {"MirrorLossNotRecorded", Plant::kMirrorLossNotRecorded},
               {"ResyncUnlocked", Plant::kResyncUnlocked},
               {"CopiedNotFlushed", Plant::kCopiedNotFlushed},
               {"NothingCopied", Plant::kNothingCopied},
               {"HalfStarts", Plant::kHalfStarts},
               {"PromiseSkipped", Plant::kPromiseSkipped},
               {"MissingNotFailed", Plant::kMissingNotFailed}};

Plant Asked() {
  const char* asked = std::getenv("LABRACK_PLANT");
  if (asked == nullptr) return Plant::kNone;
  for (const auto& known : kPlants) {
    if (std::strcmp(known.name, asked) == 0) return known.plant;
  }
  std::fprintf(stderr, "LABRACK_PLANT=%s: no such planted fault\n", asked);
  std::exit(2);
}

}  // namespace

Plant planted = Asked();

}  // namespace labrack
