#include "storage/block/block_device.h"

namespace labrack::block {

std::string_view PurposeName(Purpose purpose) {
  switch (purpose) {
    case Purpose::kUserData:
      return "user data";
    case Purpose::kMetadata:
      return "metadata";
    case Purpose::kLog:
      return "log";
    case Purpose::kOldData:
      return "old data";
    case Purpose::kOldParity:
      return "old parity";
    case Purpose::kParity:
      return "parity";
    case Purpose::kPrewrite:
      return "prewrite";
    case Purpose::kDirtyRegion:
      return "dirty region";
    case Purpose::kStateDatabase:
      return "state database";
    case Purpose::kResync:
      return "resync";
    case Purpose::kRebuild:
      return "rebuild";
    case Purpose::kReplay:
      return "replay";
  }
  return "unknown";
}

std::string_view PriorityClassName(PriorityClass priority) {
  switch (priority) {
    case PriorityClass::kSyncRead:
      return "sync read";
    case PriorityClass::kSyncWrite:
      return "sync write";
    case PriorityClass::kAsyncRead:
      return "async read";
    case PriorityClass::kAsyncWrite:
      return "async write";
    case PriorityClass::kScrub:
      return "scrub";
  }
  return "unknown";
}

}  // namespace labrack::block
