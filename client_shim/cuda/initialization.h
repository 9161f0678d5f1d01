#pragma once

#include <cuda.h>

namespace torpor::shim {

// cuInit: opens the session. `flags` must be 0. Repeated calls succeed.
CUresult Initialize(unsigned flags);

}  // namespace torpor::shim
