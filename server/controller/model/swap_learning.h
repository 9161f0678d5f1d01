#pragma once

#include "memory/range_allocator.h"
#include "memory/swap_history.h"
#include "proto/torpor/v1/node.pb.h"

namespace torpor::server {

// Learns from leases and swap-outs how one session uses its memory, and plans its swap-ins. Not
// thread-safe.
class SwapLearning {
 public:
  // Writes the plan of a swap-in that begins now: the live allocations in order of transfer,
  // without the chunks `growth`, for which no GPU has room yet.
  void Plan(const memory::RangeAllocator& allocations, memory::Block growth,
            google::protobuf::RepeatedPtrField<v1::Allocation>& plan);

  // A lease begins. Returns whether the executor must report the order of first touch at the end.
  bool BeginLease();
  void EndLease(const v1::Learned& learned, bool is_explicit);

  // Learns from a swap-out's report. Ignored if the executor could not tell allocations apart.
  void OnSwapOut(const v1::Learned& learned);
  // Whether a swap-out without hurry must look for addresses in all allocations.
  bool should_search_whole_image() const { return !is_plan_joined_ && !history_.knows_holders(); }

  // Uploads have gone unseen: any allocation may hold addresses.
  void OnUnseenChanges() { history_.OnUnseenChanges(); }
  void OnFreed(Bytes offset) { history_.OnFreed(offset); }

 private:
  memory::SwapHistory history_;
  bool is_plan_joined_ = false;  // the last swap-in sent joined pieces, too many to be told apart
  bool is_told_all_ = false;     // BeginLease's answer for the present lease
};

}  // namespace torpor::server
