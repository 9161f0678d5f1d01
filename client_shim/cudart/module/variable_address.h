#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/symbol_addresses.h"

namespace torpor::shim {

// The address of a variable for the program: stable until cudaDeviceReset, translated by executors
// of other GPUs. Call with the module loaded. cudaErrorInvalidSymbol if the loaded module lacks the
// variable, cudaErrorNotSupported if two GPUs' variables collide.
cudaError_t FindVariable(const ClientVariable& variable, SymbolSpan& span);

}  // namespace torpor::shim
