#include "emulator/exec/runtime/bulk_copy.h"

#include <cstring>

#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/runtime/device_reader.h"

namespace torpor::emulator {
namespace {

constexpr std::uint64_t kAlignment = 16;

// Whether the lane may copy; if not, the job knows why.
bool CheckCopy(const Warp& warp, std::uint32_t lane, std::uint64_t to, std::uint64_t from,
               std::uint64_t bytes) {
  if ((to | from | bytes) % kAlignment != 0) {
    warp.runner->Fail(ExecError::kMisalignedAddress,
                      "misaligned bulk copy of " + std::to_string(bytes) + " bytes from " +
                          Hex(from) + " to " + Hex(to),
                      lane);
    return false;
  }
  for (const std::uint64_t address : {from, to}) {
    if (bytes == 0 || MayAccess(warp, address, bytes)) continue;
    warp.runner->Fail(ExecError::kIllegalAddress,
                      "illegal address " + Hex(address) + " of a bulk copy", lane);
    return false;
  }
  return true;
}

}  // namespace

void BulkCopy(WarpContext* context, std::uint32_t mask, const std::uint64_t* to,
              const std::uint64_t* from, const std::uint64_t* bytes) {
  const Warp& warp = *static_cast<const Warp*>(context);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    if (!CheckCopy(warp, lane, to[lane], from[lane], bytes[lane])) warp.runner->Escape();
    std::memmove(reinterpret_cast<void*>(to[lane]), reinterpret_cast<const void*>(from[lane]),
                 bytes[lane]);
  }
}

}  // namespace torpor::emulator
