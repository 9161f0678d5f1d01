#pragma once

#include <driver_types.h>

namespace torpor::shim {

// What cudaGetErrorName and cudaGetErrorString say; static strings.
const char* ErrorName(cudaError_t error);
const char* ErrorString(cudaError_t error);

}  // namespace torpor::shim
