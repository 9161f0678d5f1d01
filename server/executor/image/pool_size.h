#pragma once

#include <cstddef>

#include "base/units.h"

namespace torpor::executor {

// What decides how much of a GPU's memory serves images.
struct PoolNeeds {
  Bytes total = 0;    // the GPU's memory
  Bytes free = 0;     // with context and libraries in place
  Bytes reserve = 0;  // `driver_reserve`; 0: auto
  Bytes spare = 0;    // taken by other executors' contexts and libraries, later
  Bytes asked = 0;    // `pool_bytes`; 0: all that may be had
};

// Returns the memory that the driver keeps for what comes later (modules, local memory, libraries'
// handles, arrays): `driver_reserve`, or 3 GiB or 3% of the GPU, the larger; at most a quarter of
// the GPU.
Bytes ReserveOf(const PoolNeeds& needs);

// Returns the bytes for images: what was asked for, as far as the free memory beyond the reserve
// and the spare executor suffices. 0 if nothing is left.
Bytes PoolBytes(const PoolNeeds& needs);

// Returns how many chunks go back to a driver that gave only `given` of the chunks that PoolBytes
// counted on: other processes have taken memory meanwhile, and the reserve was taken for chunks as
// well. Makes `reserve` free again, but gives back at most a quarter of the chunks.
std::size_t ChunksToGiveBack(std::size_t given, Bytes chunk_bytes, Bytes reserve);

}  // namespace torpor::executor
