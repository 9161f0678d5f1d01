#pragma once

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <csetjmp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/runtime/arena.h"
#include "emulator/exec/runtime/fiber_stack.h"
#include "emulator/exec/runtime/kernel_job.h"

namespace torpor::emulator {

class BlockRunner;

struct ResidentBlock;

struct Warp : WarpContext {
  BlockRunner* runner = nullptr;
  ResidentBlock* block = nullptr;
  // Of code that is not resumable: where a warp that waits goes on, or one that has ended begins
  // its next block; null before its first one.
  boost::context::detail::fcontext_t resume = nullptr;
  Warp* next_in_queue = nullptr;
  std::unique_ptr<FiberStack> stack;
};

// First come, first served. A warp is in one queue at most.
class WarpQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  void Clear() { first_ = nullptr; }
  void Push(Warp& warp) {
    warp.next_in_queue = nullptr;
    (first_ == nullptr ? first_ : last_->next_in_queue) = &warp;
    last_ = &warp;
  }
  // Null if there is none.
  Warp* Pop() {
    Warp* const warp = first_;
    if (warp != nullptr) first_ = warp->next_in_queue;
    return warp;
  }
  // All of them, in their order.
  void PushAll(std::span<Warp> warps) {
    for (std::size_t i = 0; i + 1 < warps.size(); ++i) warps[i].next_in_queue = &warps[i + 1];
    warps.back().next_in_queue = nullptr;
    (first_ == nullptr ? first_ : last_->next_in_queue) = &warps.front();
    last_ = &warps.back();
  }
  // Takes all of `others`, in their order.
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

// One of a block's named barriers. Arrivals are counted in warps: a barrier's thread count is a
// multiple of 32.
struct BlockBarrier {
  std::uint32_t expected_warps = 0;  // 0: all warps that have not ended
  std::uint32_t arrived = 0;
  bool reduces = false;     // somebody wants to know of the predicates:
  std::uint32_t count = 0;  // how many hold
  bool all = true;          // whether all do
  WarpQueue waiting;
};

// What the warps of a block have saved where they wait: `bytes` of each, aligned for vectors.
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

struct ResidentBlock {
  ArenaSlot slot;
  std::vector<Warp> warps;
  SavedStates saved_states;
  std::array<BlockBarrier, kBlockBarriers + 1> barriers;  // the last one is the cluster's
  std::uint32_t incomplete_barriers = 0;                  // at which some warp has arrived
  std::uint32_t live_warps = 0;
};

// 0x1234, as messages write addresses.
std::string Hex(std::uint64_t value);

// Runs blocks on the calling thread: the warps of a block one after the other, or, where they
// wait for each other, by turns, as resumable code or as fibers. Belongs to one thread, which needs
// an alternate signal stack.
class BlockRunner {
 public:
  BlockRunner() = default;

  // Before the first block of a job.
  bool Prepare(KernelJob& job);
  // Blocks [first, end) of the job, one after the other. On a failure, here or elsewhere, which the
  // job holds, it leaves out the rest.
  void RunBlocks(std::uint64_t first, std::uint64_t end);
  // The runner that executes a kernel on this thread right now, or null.
  static BlockRunner* Current();

  // Called by the warp that runs: what its lane `lane` has done is the job's failure. Escape must
  // follow, when the caller owns nothing any more.
  void Fail(ExecError code, const std::string& what, std::uint32_t lane);
  // The same where `what` says itself which thread it was.
  void Fail(ExecError code, const std::string& what);
  // Ends the block that runs, wherever its warps are. Nothing on their stacks is destroyed, so
  // nothing on them may own anything.
  [[noreturn]] void Escape();
  // Async-signal-safe.
  [[noreturn]] void RaiseFault(int signal, std::uint64_t address);
  // False if there is a fault on the way.
  bool CopyUnlessFault(void* to, std::uint64_t from, std::size_t bytes);

  // See RuntimeCalls. False, to resumable code only: the warp must leave its code.
  bool Yield(Warp& warp);
  bool TakeTurns(Warp& warp);
  bool Wait(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t mask,
            std::uint32_t predicates, BarrierMode mode);
  // What Wait does at barrier 0 for all of the block.
  bool WaitForBlock(Warp& warp) { return Arrive(warp, warp.block->barriers[0], 0, true); }
  KernelJob& job() { return *job_; }

 private:
  bool PrepareBlock(ResidentBlock& block);
  void Place(ResidentBlock& block, std::uint64_t index);
  template <typename Body>
  void CatchFailures(const Body& body);
  void Run(std::uint64_t index);
  void RunInTurns();
  void RunResumable();
  void Enqueue(ResidentBlock& block);
  bool AddBlock();
  bool ShouldStartAnother();
  bool StartAnother();
  bool IsAlone() const { return !job_->schedule.switches || ready_.empty(); }
  bool LetOthersRun(Warp& warp);
  bool PrepareWaiting(ResidentBlock& block);
  void AbandonBlocks();
  void SwitchFrom(Warp* warp);
  void KeepLeaver(boost::context::detail::transfer_t transfer);
  void Finish(Warp& warp) {
    --unfinished_;
    ResidentBlock& block = *warp.block;
    --block.live_warps;
    if (block.incomplete_barriers > 0) ReleaseAfterEnd(block);
  }
  void ReleaseAfterEnd(ResidentBlock& block);
  bool Arrive(Warp& warp, BlockBarrier& barrier, std::uint32_t expected_warps, bool waits);
  static bool IsComplete(const ResidentBlock& block, const BlockBarrier& barrier) {
    return barrier.arrived >=
           (barrier.expected_warps == 0 ? block.live_warps : barrier.expected_warps);
  }
  void Release(ResidentBlock& block, BlockBarrier& barrier);
  std::string Describe(const Warp& warp, int lane) const;
  void ReportFault();
  static void FiberMain(boost::context::detail::transfer_t transfer);

  KernelJob* job_ = nullptr;
  std::vector<std::unique_ptr<ResidentBlock>> blocks_;
  std::size_t started_ = 0;  // of them
  unsigned yields_ = 0;
  WarpQueue ready_;  // warps that can run
  Warp* running_ = nullptr;
  boost::context::detail::fcontext_t scheduler_ = nullptr;
  std::size_t unfinished_ = 0;
  sigjmp_buf escape_ = {};
  sigjmp_buf copy_escape_ = {};
  bool copying_ = false;  // in CopyUnlessFault, whose faults go to copy_escape_
  int fault_signal_ = 0;
  std::uint64_t fault_address_ = 0;
};

// Generated code spends much of its time here where blocks are small.
inline bool BlockRunner::Arrive(Warp& warp, BlockBarrier& barrier, std::uint32_t expected_warps,
                                bool waits) {
  ResidentBlock& block = *warp.block;
  barrier.expected_warps = expected_warps;
  if (++barrier.arrived == 1) ++block.incomplete_barriers;
  // The last to come has no need to wait for its turn; a warp alone has nobody to wait for.
  if (IsComplete(block, barrier) || !job_->schedule.switches) {
    Release(block, barrier);
  } else if (waits) {
    barrier.waiting.Push(warp);
    if (job_->resumable) return false;
    SwitchFrom(&warp);
  }
  return true;
}

}  // namespace torpor::emulator
