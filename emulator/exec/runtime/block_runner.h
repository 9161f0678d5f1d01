#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/runtime/kernel_job.h"
#include "emulator/exec/runtime/resident_block.h"

namespace torpor::emulator {

// 0x1234, as messages write addresses.
std::string Hex(std::uint64_t value);

// Runs clusters on the calling thread; a grid without clusters has clusters of one block. Warps run
// one after the other; warps that wait for each other take turns, as resumable code or as fibers.
// Not thread-safe. The calling thread needs an alternate signal stack (InstallSignalStack).
class BlockRunner {
 public:
  BlockRunner() = default;

  // Takes memory for a cluster of `job`; call before the first cluster. Returns false, and the job
  // has failed, if memory lacks.
  bool Prepare(KernelJob& job);
  // Runs clusters [first, end) of the job, one after the other. Skips the rest after a failure, on
  // this thread or another; the job holds the failure.
  void RunClusters(std::uint64_t first, std::uint64_t end);
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

  // See RuntimeCalls. Return false, to resumable code only, if the warp must leave the code.
  bool Yield(Warp& warp);
  bool TakeTurns(Warp& warp);
  bool Wait(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t mask,
            std::uint32_t predicates, BarrierMode mode);
  // Same as Wait at barrier 0 for the whole block.
  bool WaitForBlock(Warp& warp) { return Arrive(warp, warp.block->barriers[0], 0, true); }
  KernelJob& job() { return *job_; }

 private:
  bool PrepareCluster(ResidentCluster& cluster);
  bool PrepareBlock(ResidentBlock& block);
  void Place(ResidentCluster& cluster, std::uint64_t index);
  void PlaceBlock(ResidentBlock& block, const Dim3& cluster_id, std::uint32_t multiprocessor);
  template <typename Body>
  void CatchFailures(const Body& body);
  void Run(std::uint64_t index);
  void RunInTurns();
  void RunResumable();
  void Enqueue(ResidentBlock& block);
  bool AddCluster();
  bool AddBlock(ResidentCluster& cluster);
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
    if (block.cluster->arrived > 0) LeaveCluster(warp);
  }
  void ReleaseAfterEnd(ResidentBlock& block);
  bool WaitInCluster(Warp& warp, BarrierMode mode);
  void LeaveCluster(const Warp& warp);
  void EndPhaseIfComplete(ResidentCluster& cluster);
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
  std::vector<std::unique_ptr<ResidentCluster>> clusters_;
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
