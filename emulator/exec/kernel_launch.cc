#include "emulator/exec/kernel_launch.h"

#include <atomic>
#include <optional>

#include "emulator/exec/runtime/kernel_job.h"
#include "emulator/exec/runtime/worker_pool.h"
#include "emulator/exec/texture/texture_table.h"

namespace torpor::emulator {
namespace {

// Rows of blocks of a kernel that scatters; more bring no more (see Transpose/naive of the
// benchmark).
constexpr std::uint32_t kScatterBand = 8;

}  // namespace

ExecResult<void> LaunchKernel(Kernel& kernel, const LaunchConfig& config,
                              const DeviceTraits& traits, DeviceMemory& memory,
                              const std::uint64_t* symbols) {
  if (auto valid = CheckLaunch(kernel.info(), config, traits); !valid) return valid;
  if (config.parameters == nullptr && kernel.info().parameter_bytes != 0) {
    return Failure<ExecError>{ExecError::kInvalidLaunch,
                              "kernel " + kernel.info().name + ": no parameters"};
  }
  const auto code = kernel.Code(config.block);
  if (!code) return code.failure();
  static std::atomic<std::uint64_t> grids = 0;
  KernelJob job;
  job.kernel = kernel.info().name;
  job.code = *code;
  job.resumable = kernel.layout().resumable;
  job.shape.config = config;
  job.shape.config.cluster = ClusterOf(kernel.info(), config);
  job.shape.explicit_cluster = config.cluster.x != 0 || kernel.info().cluster.x != 0;
  const auto* const bytes = static_cast<const std::uint8_t*>(config.parameters);
  job.memory.parameters.assign(bytes, bytes + kernel.info().parameter_bytes);
  job.memory.symbols = symbols;
  job.memory.dynamic_shared_offset = kernel.layout().dynamic_shared_offset;
  job.memory.shared_alignment = kernel.layout().shared_alignment;
  job.memory.reserved_shared = kernel.layout().reserved_shared;
  job.memory.local_bytes_per_warp = kernel.local_bytes_per_warp();
  job.memory.device = &memory;
  job.traits = traits;
  job.grid_id = ++grids;
  const bool waits = job.resumable ? code->traits.saved_bytes != 0 : kernel.waits();
  job.schedule.blocks_wait = job.shape.clusters() > 1 && (config.cooperative || kernel.spins());
  const bool has_company = job.shape.warps() > 1 || job.shape.cluster_blocks() > 1;
  job.schedule.switches = waits && (job.schedule.blocks_wait || has_company);
  // Scattered writes, of a transposed matrix for example, share cache lines and pages with writes
  // of the next row of blocks. Blocks that wait for other blocks may count on the usual order.
  if (code->traits.scatters != 0 && !kernel.spins()) job.shape.band = kScatterBand;
  job.shape.FillLaneTids();
  // Blocks that may wait for each other all start at once, as far as there are cores.
  job.schedule.cluster_time =
      kernel.spins() ? Duration{} : kernel.block_time() * job.shape.cluster_blocks();
  std::optional<TextureTable::Use> textures;
  if (kernel.accesses_textures()) textures.emplace(TextureTable::Instance());
  WorkerPool::Instance().Run(job);
  kernel.set_block_time(job.schedule.cluster_time / job.shape.cluster_blocks());
  if (job.progress.failure) return *job.progress.failure;
  return {};
}

}  // namespace torpor::emulator
