#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/module/modules.h"

namespace torpor::shim {

// Notes an attribute of a prepared kernel that concerns clusters, for checks of launches. Other
// attributes succeed. cudaErrorNotPermitted for a size if the program set one at compile time.
cudaError_t NoteClusterAttribute(const ClientKernel& kernel, cudaFuncAttribute attribute,
                                 int value);

}  // namespace torpor::shim
