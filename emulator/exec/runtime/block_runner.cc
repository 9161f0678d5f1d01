#include "emulator/exec/runtime/block_runner.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "emulator/exec/runtime/runtime_calls.h"

namespace torpor::emulator {
namespace {

namespace context = boost::context::detail;

// The runner of the generated code that runs on this thread, else null.
thread_local BlockRunner* current_runner = nullptr;

// In the layout of Warp::barrier_result.
std::uint32_t PackedResult(const BlockBarrier& barrier) {
  return (barrier.count << 1) | (barrier.all ? 1U : 0U);
}

std::string Triple(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  char text[40];
  std::snprintf(text, sizeof(text), "(%u,%u,%u)", x, y, z);
  return text;
}

}  // namespace

std::string Hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

BlockRunner* BlockRunner::Current() { return current_runner; }

void BlockRunner::RunClusters(std::uint64_t first, std::uint64_t end) {
  CatchFailures([&] {
    for (std::uint64_t index = first; index < end && !job_->progress.failed; ++index) Run(index);
  });
}

// An error anywhere in generated code, even on a fiber's stack or in a signal handler, jumps back
// here. No object on the skipped stacks owns resources: faults come from generated code and from
// CopyUnlessFault, and callers of Escape own nothing. The signal mask needs no saving, as the
// handler blocks no signals.
template <typename Body>
void BlockRunner::CatchFailures(const Body& body) {
  if (sigsetjmp(escape_, 0) != 0) {
    current_runner = nullptr;
    AbandonBlocks();
    if (fault_signal_ != 0) ReportFault();
    running_ = nullptr;
    return;
  }
  fault_signal_ = 0;
  current_runner = this;
  body();
  running_ = nullptr;
  current_runner = nullptr;
}

// Warps that never wait run one after the other, without a queue.
void BlockRunner::Run(std::uint64_t index) {
  ResidentCluster& cluster = *clusters_[0];
  Place(cluster, index);
  if (!job_->schedule.switches) {
    for (const auto& block : cluster.blocks) {
      for (std::uint32_t i = 0; i < job_->shape.warps(); ++i) {
        running_ = &block->warps[i];
        job_->code.entry(running_);
      }
    }
    return;
  }
  ready_.Clear();
  unfinished_ = 0;
  started_ = 1;
  for (const auto& block : cluster.blocks) Enqueue(*block);
  RunInTurns();
}

// Queues all warps of the block, to run from the beginning.
void BlockRunner::Enqueue(ResidentBlock& block) {
  const std::span<Warp> warps(block.warps.data(), job_->shape.warps());
  ready_.PushAll(warps);
  unfinished_ += warps.size();
  if (job_->resumable) return;
  for (Warp& warp : warps) {
    if (warp.resume != nullptr) continue;
    warp.resume = context::make_fcontext(warp.stack->top(), FiberStack::size(), &FiberMain);
  }
}

// Returns when all warps have ended. Warps left without a ready warp are a deadlock.
void BlockRunner::RunInTurns() {
  if (job_->resumable) {
    RunResumable();
  } else {
    SwitchFrom(nullptr);
  }
  if (unfinished_ == 0) return;
  running_ = &clusters_[0]->blocks[0]->warps[0];
  Fail(ExecError::kTrap, "deadlock: all warps that have not ended wait at barriers", 0);
  Escape();
}

// A waiting warp is in the queue of a barrier or in ready_.
void BlockRunner::RunResumable() {
  const KernelEntry entry = job_->code.entry;
  while (Warp* const warp = ready_.Pop()) {
    running_ = warp;
    if (entry(warp) == 0) Finish(*warp);
  }
}

// Whether the warps on this thread may wait for clusters not yet started.
bool BlockRunner::ShouldStartAnother() {
  constexpr std::size_t kMax = 512;
  constexpr Duration kPatience = std::chrono::milliseconds(2);  // for other threads to come
  constexpr unsigned kYields = 64;                              // between looks at the clock
  const bool may_wait =
      job_->schedule.blocks_wait && job_->progress.next_cluster < job_->shape.clusters();
  if (!may_wait) return false;
  if (started_ < job_->schedule.share) return true;
  const bool has_room = started_ < kMax || job_->shape.config.cooperative;
  if (++yields_ % kYields != 0 || !has_room) return false;
  return std::chrono::steady_clock::now() - job_->schedule.start > kPatience;
}

// Starts another cluster beside the running clusters. Returns false, and the job has failed, if
// memory lacks.
bool BlockRunner::StartAnother() {
  const std::uint64_t index = job_->progress.next_cluster.fetch_add(1);
  if (index >= job_->shape.clusters()) return true;
  try {
    if (started_ == clusters_.size() && !AddCluster()) return false;
    ResidentCluster& cluster = *clusters_[started_];
    if (!PrepareCluster(cluster)) return false;
    Place(cluster, index);
    for (const auto& block : cluster.blocks) Enqueue(*block);
    ++started_;
    return true;
  } catch (const std::bad_alloc&) {
    job_->progress.Fail({ExecError::kOutOfMemory, "no memory for the blocks of " + job_->kernel});
    return false;
  }
}

// The warps of blocks that ended early stand anywhere, some at barriers.
void BlockRunner::AbandonBlocks() {
  for (const auto& cluster : clusters_) {
    cluster->arrived = 0;
    cluster->waiting.Clear();
    for (const auto& block : cluster->blocks) {
      for (Warp& warp : block->warps) warp.resume = nullptr;
      block->barriers.fill({});
      block->incomplete_barriers = 0;
    }
  }
}

// Switches from `warp` (null: from RunInTurns) to the next ready warp, or to RunInTurns if no warp
// is ready. Returns at the next turn of the caller. Switches straight from warp to warp: a way
// through RunInTurns would be two switches.
void BlockRunner::SwitchFrom(Warp* warp) {
  running_ = ready_.Pop();
  KeepLeaver(context::jump_fcontext(running_ == nullptr ? scheduler_ : running_->resume, warp));
}

// Keeps the place where the leaver resumes.
void BlockRunner::KeepLeaver(context::transfer_t transfer) {
  auto* const left = static_cast<Warp*>(transfer.data);
  (left == nullptr ? scheduler_ : left->resume) = transfer.fctx;
}

// Body of a fiber: runs a warp once for each block.
void BlockRunner::FiberMain(context::transfer_t transfer) {
  BlockRunner& runner = *current_runner;
  Warp& warp = *runner.running_;
  runner.KeepLeaver(transfer);
  while (true) {
    runner.job_->code.entry(&warp);
    runner.Finish(warp);
    runner.SwitchFrom(&warp);
  }
}

void BlockRunner::ReleaseAfterEnd(ResidentBlock& block) {
  for (BlockBarrier& barrier : block.barriers) {
    if (barrier.arrived > 0 && IsComplete(block, barrier)) Release(block, barrier);
  }
}

// Alone on this thread: the warp waits for another thread. A fiber must not switch to itself, since
// `resume` is the place of the last stop, not the current place.
bool BlockRunner::Yield(Warp& warp) {
  // The warp may wait for a warp that failed.
  if (job_->progress.failed) Escape();
  if (ShouldStartAnother() && !StartAnother()) Escape();
  if (!IsAlone()) return LetOthersRun(warp);
  sched_yield();
  return true;
}

bool BlockRunner::TakeTurns(Warp& warp) { return IsAlone() || LetOthersRun(warp); }

bool BlockRunner::LetOthersRun(Warp& warp) {
  ready_.Push(warp);
  if (job_->resumable) return false;
  SwitchFrom(&warp);
  return true;
}

bool BlockRunner::Wait(Warp& warp, std::uint32_t id, std::uint32_t threads, std::uint32_t mask,
                       std::uint32_t predicates, BarrierMode mode) {
  if (id == kClusterBarrier) return WaitInCluster(warp, mode);
  ResidentBlock& block = *warp.block;
  if (id >= block.barriers.size()) {
    Fail(ExecError::kTrap, "barrier " + std::to_string(id) + " does not exist", 0);
    Escape();
  }
  BlockBarrier& barrier = block.barriers[id];
  const bool reduces = mode != BarrierMode::kSync && mode != BarrierMode::kArrive;
  if (reduces) {
    barrier.reduces = true;
    barrier.count += static_cast<std::uint32_t>(__builtin_popcount(predicates));
    barrier.all = barrier.all && predicates == mask;
  }
  // The last warp to come; Release hands the result to the other warps.
  warp.barrier_result = PackedResult(barrier);
  const std::uint32_t expected_warps = (threads + kWarpLanes - 1) / kWarpLanes;
  return Arrive(warp, barrier, expected_warps, mode != BarrierMode::kArrive);
}

// Makes the waiting warps ready, and the barrier as new.
void BlockRunner::Release(ResidentBlock& block, BlockBarrier& barrier) {
  if (barrier.reduces) {
    const std::uint32_t result = PackedResult(barrier);
    barrier.waiting.ForEach([&](Warp& warp) { warp.barrier_result = result; });
    barrier.reduces = false;
    barrier.count = 0;
    barrier.all = true;
  }
  ready_.Append(barrier.waiting);
  barrier.arrived = 0;
  --block.incomplete_barriers;
}

// barrier.cluster.arrive, or .wait for the end of the phase in which the warp arrived.
bool BlockRunner::WaitInCluster(Warp& warp, BarrierMode mode) {
  if (!job_->schedule.switches) return true;
  ResidentCluster& cluster = *warp.block->cluster;
  if (mode == BarrierMode::kArrive) {
    // Lanes of a warp that come apart arrive once.
    if (warp.is_at_cluster) return true;
    warp.is_at_cluster = true;
    warp.cluster_phase = cluster.phase;
    ++cluster.arrived;
    EndPhaseIfComplete(cluster);
    return true;
  }
  if (!warp.is_at_cluster || warp.cluster_phase != cluster.phase) {
    warp.is_at_cluster = false;
    return true;
  }
  cluster.waiting.Push(warp);
  if (job_->resumable) return false;
  SwitchFrom(&warp);
  return true;
}

// Nobody waits for a warp that has ended.
void BlockRunner::LeaveCluster(const Warp& warp) {
  ResidentCluster& cluster = *warp.block->cluster;
  if (warp.is_at_cluster && warp.cluster_phase == cluster.phase) --cluster.arrived;
  if (cluster.arrived > 0) EndPhaseIfComplete(cluster);
}

void BlockRunner::EndPhaseIfComplete(ResidentCluster& cluster) {
  if (cluster.arrived < cluster.live_warps()) return;
  cluster.waiting.ForEach([](Warp& warp) { warp.is_at_cluster = false; });
  ready_.Append(cluster.waiting);
  cluster.arrived = 0;
  ++cluster.phase;
}

std::string BlockRunner::Describe(const Warp& warp, int lane) const {
  const std::uint32_t* const tid = warp.lane_tids + (lane < 0 ? 0 : lane);
  return "kernel " + job_->kernel + ", block " +
         Triple(warp.ctaid[0], warp.ctaid[1], warp.ctaid[2]) +
         (lane < 0 ? ", in the warp of thread " : ", thread ") +
         Triple(tid[0], tid[kWarpLanes], tid[std::size_t{2} * kWarpLanes]);
}

void BlockRunner::Fail(ExecError code, const std::string& what, std::uint32_t lane) {
  job_->progress.Fail({code, what + " in " + Describe(*running_, static_cast<int>(lane))});
}

void BlockRunner::Fail(ExecError code, const std::string& what) {
  job_->progress.Fail({code, what});
}

void BlockRunner::Escape() { siglongjmp(escape_, 1); }

bool BlockRunner::CopyUnlessFault(void* to, std::uint64_t from, std::size_t bytes) {
  if (sigsetjmp(copy_escape_, 0) != 0) return false;
  copying_ = true;
  // The handler runs in between, as far as the compiler knows.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copying_ = false;
  return true;
}

void BlockRunner::RaiseFault(int signal, std::uint64_t address) {
  if (copying_) {
    copying_ = false;
    siglongjmp(copy_escape_, 1);
  }
  fault_signal_ = signal;
  fault_address_ = address;
  siglongjmp(escape_, 1);
}

// Runs after the jump out of the signal handler, so may allocate.
void BlockRunner::ReportFault() {
  const std::string where = " in " + Describe(*running_, -1);
  if (fault_signal_ == SIGSEGV || fault_signal_ == SIGBUS) {
    job_->progress.Fail(
        {ExecError::kIllegalAddress, "illegal address " + Hex(fault_address_) + where});
  } else {
    job_->progress.Fail({ExecError::kTrap, std::string(strsignal(fault_signal_)) + where});
  }
  fault_signal_ = 0;
}

}  // namespace torpor::emulator
