#pragma once

#include <cuda.h>

#include "base/result.h"

namespace torpor::emulator {

// A value, or the driver's answer with a message that says why (empty if there is no more to say).
template <typename T>
using DriverResult = Result<T, CUresult>;

// CUDA_ERROR_INVALID_VALUE; `why` is for the log.
inline Failure<CUresult> InvalidValue(const char* why) { return {CUDA_ERROR_INVALID_VALUE, why}; }

}  // namespace torpor::emulator
