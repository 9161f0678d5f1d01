#pragma once

#include <driver_types.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/cuda_api/call_outcome.h"

namespace torpor::executor {

// The answer to a command with a kernel that the session has not created.
inline cuda_api::CallStatus UnknownKernel(std::uint64_t kernel) {
  return cuda_api::CallFailed(cudaErrorInvalidDeviceFunction,
                              absl::StrCat("the session has no kernel ", kernel));
}

}  // namespace torpor::executor
