#pragma once

#include <cuda_runtime_api.h>

namespace torpor::shim {

// Whether `pointer` lies in memory that the program has registered (cudaHostRegister). Such memory
// is not shared with the executor: copies treat it as pageable, kernels cannot reach it.
bool IsRegistered(const void* pointer);

}  // namespace torpor::shim
