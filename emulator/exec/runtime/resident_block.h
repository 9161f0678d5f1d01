#pragma once

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/runtime/arena.h"
#include "emulator/exec/runtime/fiber_stack.h"

// What a thread keeps of the blocks that run on the thread.
namespace torpor::emulator {

class BlockRunner;

struct ResidentBlock;

// A warp of a resident block.
struct Warp : WarpContext {
  BlockRunner* runner = nullptr;
  ResidentBlock* block = nullptr;
  // For code that is not resumable: where a waiting warp goes on, or an ended warp begins the next
  // block. Null before the first block.
  boost::context::detail::fcontext_t resume = nullptr;
  Warp* next_in_queue = nullptr;
  // Whether the warp has arrived at the cluster's barrier and not waited yet, and in which phase.
  bool is_at_cluster = false;
  std::uint32_t cluster_phase = 0;
  std::unique_ptr<FiberStack> stack;
};

// Queue of warps, first come, first served. Links the warps themselves: a warp is in at most one
// queue.
class WarpQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void Clear() { first_ = nullptr; }
  void Push(Warp& warp) {
    warp.next_in_queue = nullptr;
    (first_ == nullptr ? first_ : last_->next_in_queue) = &warp;
    last_ = &warp;
  }
  // Returns null if the queue is empty.
  Warp* Pop() {
    Warp* const warp = first_;
    if (warp != nullptr) first_ = warp->next_in_queue;
    return warp;
  }
  // Appends all `warps`, in order.
  void PushAll(std::span<Warp> warps) {
    for (std::size_t i = 0; i + 1 < warps.size(); ++i) warps[i].next_in_queue = &warps[i + 1];
    warps.back().next_in_queue = nullptr;
    (first_ == nullptr ? first_ : last_->next_in_queue) = &warps.front();
    last_ = &warps.back();
  }
  // Moves all warps of `others` to the end, in order.
  void Append(WarpQueue& others) {
    if (others.empty()) return;
    (first_ == nullptr ? first_ : last_->next_in_queue) = others.first_;
    last_ = others.last_;
    others.Clear();
  }
  template <typename Body>
  void ForEach(const Body& body) const {
    for (Warp* warp = first_; warp != nullptr; warp = warp->next_in_queue) body(*warp);
  }

 private:
  Warp* first_ = nullptr;
  Warp* last_ = nullptr;
};

// A named barrier of a block. Counts arrivals in warps: the thread count of a barrier is a multiple
// of 32.
struct BlockBarrier {
  std::uint32_t expected_warps = 0;  // 0: all warps that have not ended
  std::uint32_t arrived = 0;
  bool reduces = false;     // somebody wants to know of the predicates:
  std::uint32_t count = 0;  // how many hold
  bool all = true;          // whether all do
  WarpQueue waiting;
};

// Saved state of a block's waiting warps: `bytes` each, aligned for vectors.
class SavedStates {
 public:
  void Resize(std::size_t warps, std::uint64_t bytes) {
    bytes_ = bytes;
    if (lines_.size() * sizeof(Line) < warps * bytes) lines_.resize(warps * bytes / sizeof(Line));
  }
  std::uint8_t* OfWarp(std::size_t warp) { return lines_.data()->bytes + warp * bytes_; }

 private:
  struct alignas(kSavedStateAlignment) Line {
    std::uint8_t bytes[kSavedStateAlignment];
  };
  std::vector<Line> lines_;
  std::uint64_t bytes_ = 0;
};

struct ResidentCluster;

struct ResidentBlock {
  ResidentCluster* cluster = nullptr;
  std::uint32_t rank = 0;  // in the cluster
  ArenaSlot slot;
  std::vector<Warp> warps;
  SavedStates saved_states;
  std::array<BlockBarrier, kBlockBarriers> barriers;
  std::uint32_t incomplete_barriers = 0;  // at which some warp has arrived
  std::uint32_t live_warps = 0;
};

// Blocks that run together on one thread, in the order of ranks, and see each other's shared
// memory: a cluster, or a single block. The first block's slot holds the shared memory of all.
struct ResidentCluster {
  std::vector<std::unique_ptr<ResidentBlock>> blocks;
  // barrier.cluster: the warps that have arrived in this phase and not ended, and the warps that
  // wait for the end of the phase.
  std::uint32_t arrived = 0;
  std::uint32_t phase = 0;
  WarpQueue waiting;

  std::uint32_t live_warps() const {
    std::uint32_t sum = 0;
    for (const auto& block : blocks) sum += block->live_warps;
    return sum;
  }
};

}  // namespace torpor::emulator
