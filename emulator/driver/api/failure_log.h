#pragma once

#include <cuda.h>

namespace torpor::emulator {

// Tells the log callbacks that call `name` answers `error`, if the topology's strictness has
// `log_failures`. CUDA_ERROR_NOT_READY is no failure.
void LogFailure(const char* name, CUresult error) noexcept;

}  // namespace torpor::emulator
