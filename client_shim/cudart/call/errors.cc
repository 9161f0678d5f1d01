#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/error_texts.h"

namespace torpor::shim {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t RecordError(cudaError_t error) {
  // "Not ready" is an answer, not an error: CUDA does not keep it as the last error.
  const bool is_remembered = error != cudaSuccess && error != cudaErrorNotReady;
  if (is_remembered && !IsInsideDriverCall()) last_error = error;
  return error;
}

}  // namespace torpor::shim

using torpor::shim::last_error;

cudaError_t cudaGetLastError() {
  const torpor::shim::TracedCall traced;
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  const torpor::shim::TracedCall traced;
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) { return torpor::shim::ErrorName(error); }

const char* cudaGetErrorString(cudaError_t error) { return torpor::shim::ErrorString(error); }
