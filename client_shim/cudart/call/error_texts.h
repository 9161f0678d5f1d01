#pragma once

#include <driver_types.h>

namespace torpor::shim {

// The texts of cudaGetErrorName and cudaGetErrorString: static strings, for unknown errors too.
const char* ErrorName(cudaError_t error);
const char* ErrorString(cudaError_t error);

}  // namespace torpor::shim
