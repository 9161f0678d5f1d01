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
  // For code that is not resumable: where a waiting warp goes on, or an ended warp begins the next
  // block. Null before the first block.
  boost::context::detail::fcontext_t resume = nullptr;
  Warp* next_in_queue = nullptr;
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

// Runs blocks on the calling thread. Warps of a block run one after the other; warps that wait for
// each other take turns, as resumable code or as fibers. Not thread-safe. The calling thread needs
// an alternate signal stack (InstallSignalStack).
class BlockRunner {
 public:
  BlockRunner() = default;

  // Takes memory for the blocks of `job`; call before the first block. Returns false, and the job
  // has failed, if memory lacks.
  bool Prepare(KernelJob& job);
  // Runs blocks [first, end) of the job, one after the other. Skips the rest after a failure, on
  // this thread or another; the job holds the failure.
  void RunBlocks(std::uint64_t first, std::uint64_t end);
  // Returns the runner whose kernel runs on this thread now, or null. Async-signal-safe.
  static BlockRunner* Current();

  // Fails the job for an error of lane `lane` of the running warp; the message names block and
  // thread. Call Escape next, when the caller owns nothing any more.
  void Fail(ExecError code, const std::string& what, std::uint32_t lane);
  // Same, with a message `what` that already names the thread.
  void Fail(ExecError code, const std::string& what);
  // Ends the running block, wherever the warps are. Does not run destructors on the warps' stacks,
  // so objects there must not own resources.
  [[noreturn]] void Escape();
  // Ends the running block for a fault of generated code. Async-signal-safe.
  [[noreturn]] void RaiseFault(int signal, std::uint64_t address);
  // Returns false if reading faults.
  bool CopyUnlessFault(void* to, std::uint64_t from, std::size_t bytes);

  // See RuntimeCalls. Returns false, to resumable code only, if the warp must leave the code.
  bool Yield(Warp& warp);
  bool TakeTurns(Warp& warp);
  bool Wait(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t mask,
            std::uint32_t predicates, BarrierMode mode);
  // Same as Wait at barrier 0 for the whole block.
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

// Inline, as kernels with small blocks spend much time here.
inline bool BlockRunner::Arrive(Warp& warp, BlockBarrier& barrier, std::uint32_t expected_warps,
                                bool waits) {
  ResidentBlock& block = *warp.block;
  barrier.expected_warps = expected_warps;
  if (++barrier.arrived == 1) ++block.incomplete_barriers;
  // The last warp to come goes on at once, and so does a single warp.
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
