#pragma once

#include <cuda.h>

namespace torpor::shim {

// cuInit: opens the session.
CUresult Initialize(unsigned flags);

}  // namespace torpor::shim
