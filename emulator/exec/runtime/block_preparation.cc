// Memory and fields of resident blocks, before they run.
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/exec/runtime/arena.h"
#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/runtime/runtime_calls.h"

namespace torpor::emulator {
namespace {

void Assign(std::uint32_t (&axes)[3], const Dim3& size) {
  axes[0] = size.x;
  axes[1] = size.y;
  axes[2] = size.z;
}

}  // namespace

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

}  // namespace torpor::emulator
