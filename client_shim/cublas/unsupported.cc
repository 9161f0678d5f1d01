#include "client_shim/unsupported.h"

#include <cublas_api.h>

#include <string>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

int Unsupported(const char* symbol) {
  torpor_client_core()->WarnOnce(symbol,
                                 std::string(symbol) +
                                     " is not supported by Torpor; it returned"
                                     " CUBLAS_STATUS_NOT_SUPPORTED (build/docs/coverage.md)");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace torpor::shim
