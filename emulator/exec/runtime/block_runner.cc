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

void Assign(std::uint32_t (&axes)[3], const Dim3& size) {
  axes[0] = size.x;
  axes[1] = size.y;
  axes[2] = size.z;
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

bool BlockRunner::Prepare(KernelJob& job) {
  job_ = &job;
  while (clusters_.size() > job.schedule.share) {
    for (const auto& block : clusters_.back()->blocks) Arena::Instance().Release(block->slot);
    clusters_.pop_back();
  }
  if (clusters_.empty() && !AddCluster()) return false;
  // The launching thread prepares before any helper.
  if (job.shape.config.cooperative && job.memory.grid_workspace == 0) {
    const ResidentBlock& first = *clusters_[0]->blocks[0];
    std::uint8_t* const memory = first.slot.parameters + kParameterWindowBytes / 2;
    std::memset(memory, 0, 256);
    job.memory.grid_workspace = reinterpret_cast<std::uint64_t>(memory);
  }
  return PrepareCluster(*clusters_[0]);
}

bool BlockRunner::AddCluster() {
  auto cluster = std::make_unique<ResidentCluster>();
  if (!AddBlock(*cluster)) return false;
  clusters_.push_back(std::move(cluster));
  return true;
}

// Takes a slot of the arena. Fails the job if the arena is full.
bool BlockRunner::AddBlock(ResidentCluster& cluster) {
  auto block = std::make_unique<ResidentBlock>();
  block->slot = Arena::Instance().Acquire();
  if (block->slot.shared_end == nullptr) {
    job_->progress.Fail(
        {ExecError::kOutOfMemory, "no address space for the blocks of " + job_->kernel});
    return false;
  }
  block->cluster = &cluster;
  block->rank = static_cast<std::uint32_t>(cluster.blocks.size());
  cluster.blocks.push_back(std::move(block));
  return true;
}

// The last job's clusters may have been of another size.
bool BlockRunner::PrepareCluster(ResidentCluster& cluster) {
  const std::uint32_t size = job_->shape.cluster_blocks();
  while (cluster.blocks.size() > size) {
    Arena::Instance().Release(cluster.blocks.back()->slot);
    cluster.blocks.pop_back();
  }
  while (cluster.blocks.size() < size) {
    if (!AddBlock(cluster)) return false;
  }
  if (!Arena::OpenWindows(cluster.blocks[0]->slot, size)) {
    job_->progress.Fail({ExecError::kOutOfMemory, "no memory for the clusters of " + job_->kernel});
    return false;
  }
  for (const auto& block : cluster.blocks) {
    if (!PrepareBlock(*block)) return false;
  }
  return true;
}

// Sets the fields of all warps that stay the same for all blocks of the job.
bool BlockRunner::PrepareBlock(ResidentBlock& block) {
  const KernelJob& job = *job_;
  const std::uint32_t warps = job.shape.warps();
  const auto dynamic = static_cast<std::uint32_t>(job.shape.config.dynamic_shared_bytes);
  const std::uint32_t shared = job.memory.dynamic_shared_offset + dynamic;
  const std::uint32_t reserved_offset = (shared + 15) / 16 * 16;
  const std::uint32_t buffer =
      job.memory.reserved_shared ? reserved_offset + kReservedSharedBytes : shared;
  if (!job.memory.parameters.empty()) {
    std::memcpy(block.slot.parameters, job.memory.parameters.data(), job.memory.parameters.size());
  }
  if (block.warps.size() < warps) block.warps = std::vector<Warp>(warps);
  const LaunchConfig& config = job.shape.config;
  const Dim3 clusters = job.shape.ClusterGrid();
  const Dim3 place = job.shape.PlaceInCluster(block.rank);
  std::uint8_t* const shared_end =
      block.cluster->blocks[0]->slot.shared_end + block.rank * kClusterStride;
  for (std::uint32_t i = 0; i < warps; ++i) {
    Warp& warp = block.warps[i];
    warp.calls = &Runtime();
    warp.parameters = block.slot.parameters;
    warp.symbols = job.memory.symbols;
    // At the very end of the window, so that the first byte behind faults if page sizes allow.
    warp.shared = shared_end - RoundUp(buffer, job.memory.shared_alignment);
    warp.local_end = block.slot.local + (i + 1) * job.memory.local_bytes_per_warp;
    warp.window_begin = job.memory.device->window_begin();
    warp.window_bytes = job.memory.device->window_end() - job.memory.device->window_begin();
    warp.arena_begin = Arena::Instance().begin();
    warp.arena_bytes = Arena::Instance().bytes();
    warp.lane_tids = &job.shape.lane_tids[std::size_t{i} * 3 * kWarpLanes];
    warp.grid_id = job.grid_id;
    warp.grid_workspace = job.memory.grid_workspace;
    const std::uint32_t left = job.shape.threads() - i * kWarpLanes;
    warp.mask = left >= kWarpLanes ? 0xffffffffU : (1U << left) - 1;
    Assign(warp.ntid, config.block);
    Assign(warp.nctaid, config.grid);
    Assign(warp.nclusterid, clusters);
    Assign(warp.cluster_nctaid, config.cluster);
    Assign(warp.cluster_ctaid, place);
    warp.cluster_rank = block.rank;
    warp.cluster_blocks = job.shape.cluster_blocks();
    warp.is_explicit_cluster = job.shape.explicit_cluster ? 1 : 0;
    warp.warp = i;
    warp.warps = warps;
    warp.dynamic_shared_bytes = dynamic;
    warp.total_shared_bytes = shared;
    warp.reserved_shared_offset = reserved_offset;
    warp.multiprocessors = job.traits.multiprocessors;
    warp.runner = this;
    warp.block = &block;
  }
  return PrepareWaiting(block);
}

// Gives each warp room to wait: saved state for resumable code, else a stack.
bool BlockRunner::PrepareWaiting(ResidentBlock& block) {
  const std::uint32_t warps = job_->schedule.switches ? job_->shape.warps() : 0;
  if (job_->resumable) block.saved_states.Resize(warps, job_->code.traits.saved_bytes);
  for (std::uint32_t i = 0; i < warps; ++i) {
    Warp& warp = block.warps[i];
    if (job_->resumable) {
      warp.saved_state = block.saved_states.OfWarp(i);
      continue;
    }
    if (warp.stack == nullptr) warp.stack = std::make_unique<FiberStack>();
    if (!warp.stack->valid()) {
      warp.stack.reset();
      job_->progress.Fail({ExecError::kOutOfMemory, "no memory for the stacks of " + job_->kernel});
      return false;
    }
  }
  return true;
}

// Sets the fields of all warps for cluster number `index`, which has not started yet.
void BlockRunner::Place(ResidentCluster& cluster, std::uint64_t index) {
  const Dim3 id = job_->shape.ClusterCoordinates(index);
  std::uint64_t number = index * cluster.blocks.size();
  for (const auto& block : cluster.blocks) {
    PlaceBlock(*block, id, static_cast<std::uint32_t>(number++ % job_->traits.multiprocessors));
  }
  if (cluster.arrived == 0) return;  // waiting is empty, too
  cluster.arrived = 0;
  cluster.waiting.Clear();
}

void BlockRunner::PlaceBlock(ResidentBlock& block, const Dim3& cluster_id,
                             std::uint32_t multiprocessor) {
  const Dim3& size = job_->shape.config.cluster;
  const Warp& any = block.warps[0];
  const std::uint32_t x = cluster_id.x * size.x + any.cluster_ctaid[0];
  const std::uint32_t y = cluster_id.y * size.y + any.cluster_ctaid[1];
  const std::uint32_t z = cluster_id.z * size.z + any.cluster_ctaid[2];
  const std::uint32_t warps = job_->shape.warps();
  std::uint8_t* local = block.slot.local;
  for (std::uint32_t i = 0; i < warps; ++i, local += job_->memory.local_bytes_per_warp) {
    Warp& warp = block.warps[i];
    warp.ctaid[0] = x;
    warp.ctaid[1] = y;
    warp.ctaid[2] = z;
    Assign(warp.clusterid, cluster_id);
    warp.local = local;
    warp.multiprocessor = multiprocessor;
    warp.resume_point = 0;
    warp.is_at_cluster = false;
  }
  if (job_->memory.reserved_shared) {
    const Warp& warp = block.warps[0];
    std::memset(warp.shared + warp.reserved_shared_offset, 0, kReservedSharedBytes);
  }
  if (!job_->schedule.switches) return;
  block.live_warps = warps;
  if (block.incomplete_barriers == 0) return;  // all are as they are made
  block.incomplete_barriers = 0;
  for (BlockBarrier& barrier : block.barriers) barrier = BlockBarrier();
}

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
