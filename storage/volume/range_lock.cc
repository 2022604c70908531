#include "storage/volume/range_lock.h"

namespace labrack::volume {

bool RangeLock::Conflict(const Claim& a, const Claim& b) {
  if (a.end_ <= b.begin_ || b.end_ <= a.begin_) return false;
  if (a.access_ == Access::kWrite || b.access_ == Access::kWrite) return true;
  return a.access_ == Access::kCopy && b.access_ == Access::kCopy;
}

bool RangeLock::MustWait(const Claim& claim) {
  for (const Claim* other = claim.before_; other != nullptr; other = other->before_) {
    if (Conflict(*other, claim)) return true;
  }
  return false;
}

void RangeLock::Append(Claim& claim) {
  claim.before_ = last_;
  (last_ == nullptr ? first_ : last_->after_) = &claim;
  last_ = &claim;
  claim.granted_ = !MustWait(claim);
}

void RangeLock::Remove(Claim& claim) {
  (claim.before_ == nullptr ? first_ : claim.before_->after_) = claim.after_;
  (claim.after_ == nullptr ? last_ : claim.after_->before_) = claim.before_;
  for (Claim* later = claim.after_; later != nullptr; later = later->after_) {
    if (later->granted_ || !Conflict(claim, *later) || MustWait(*later)) continue;
    later->granted_ = true;
    if (later->suspended_) reactor_.Wake(later->waiter_);
  }
}

}  // namespace labrack::volume
