#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/symbol_addresses.h"

namespace torpor::shim {

// Where the variable lies for the program, which remembers it. Its module is loaded;
// cudaErrorInvalidSymbol if that has no such variable.
cudaError_t FindVariable(const Variable& variable, SymbolSpan& span);

}  // namespace torpor::shim
