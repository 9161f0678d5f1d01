#include "client_shim/unsupported.h"

#include <string>

#include "client_shim/core/client_core.h"
#include "client_shim/cudart/overrides.h"

namespace torpor::shim {

int Unsupported(const char* symbol) {
  torpor_client_core()->WarnOnce(symbol, std::string(symbol) +
                                             " is not supported by Torpor; it returned"
                                             " cudaErrorNotSupported (build/docs/coverage.md)");
  return RecordError(cudaErrorNotSupported);
}

}  // namespace torpor::shim
