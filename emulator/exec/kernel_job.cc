#include "emulator/exec/kernel_job.h"

#include <utility>

namespace torpor::emulator {

void KernelJob::FillLaneTids() {
  lane_tids.resize(std::size_t{3} * kWarpLanes * warps());
  const Dim3& block = config.block;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  for (std::uint32_t thread = 0; thread < warps() * kWarpLanes; ++thread) {
    std::uint32_t* const row =
        &lane_tids[std::size_t{thread / kWarpLanes} * 3 * kWarpLanes + thread % kWarpLanes];
    row[0] = x;
    row[kWarpLanes] = y;
    row[std::size_t{2} * kWarpLanes] = z;
    if (++x < block.x) continue;
    x = 0;
    if (++y < block.y) continue;
    y = 0;
    ++z;
  }
}

void KernelJob::Fail(Failure<ExecError> reason) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::move(reason);
  failed = true;
}

}  // namespace torpor::emulator
