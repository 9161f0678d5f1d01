#include "server/controller/model/swap_learning.h"

#include "server/controller/model/extents.h"

namespace torpor::server {

void SwapLearning::Plan(const memory::RangeAllocator& allocations, memory::Block growth,
                        google::protobuf::RepeatedPtrField<v1::Allocation>& plan) {
  is_plan_joined_ = IsSentJoined(allocations);
  if (is_plan_joined_) history_.OnUnseenChanges();
  SetPlan(plan, allocations, growth, history_);
}

bool SwapLearning::BeginLease() {
  is_told_all_ = history_.is_learning();
  return is_told_all_;
}

void SwapLearning::EndLease(const v1::Learned& learned, bool is_explicit) {
  history_.OnLease(OffsetsOf(learned.touched()), is_explicit, is_told_all_);
}

void SwapLearning::OnSwapOut(const v1::Learned& learned) {
  if (is_plan_joined_) return;
  if (learned.too_many_holders()) return history_.OnUnseenChanges();
  history_.OnUploaded(OffsetsOf(learned.uploaded()));
  history_.OnLookedAt(OffsetsOf(learned.address_holders()), learned.searched_whole_image());
}

}  // namespace torpor::server
