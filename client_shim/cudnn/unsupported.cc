#include "client_shim/unsupported.h"

#include <cudnn_graph.h>

#include <string>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

int Unsupported(const char* symbol) {
  torpor_client_core()->WarnOnce(symbol,
                                 std::string(symbol) +
                                     " is not supported by Torpor; it returned"
                                     " CUDNN_STATUS_NOT_SUPPORTED (build/docs/coverage.md)");
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace torpor::shim
