#pragma once

#include "base/units.h"

namespace torpor::executor {

// What decides how much of a GPU's memory serves images.
struct PoolNeeds {
  Bytes total = 0;    // the GPU's memory
  Bytes free = 0;     // with context and libraries in place
  Bytes reserve = 0;  // `driver_reserve`; 0: auto
  Bytes asked = 0;    // `pool_bytes`; 0: all that may be had
};

// Returns the memory that the driver keeps for what comes later (modules, local memory, libraries'
// handles, arrays): `driver_reserve`, or 3 GiB or 3% of the GPU, the larger; at most a quarter of
// the GPU.
Bytes ReserveOf(const PoolNeeds& needs);

// Returns the bytes for images: what was asked for, as far as the free memory beyond the reserve
// suffices. 0 if nothing is left.
Bytes PoolBytes(const PoolNeeds& needs);

}  // namespace torpor::executor
