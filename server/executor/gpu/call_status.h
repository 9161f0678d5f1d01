#pragma once

#include <cuda.h>

#include <string_view>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "server/executor/gpu/cuda_driver.h"

// How a call of the runtime went, for the client.
namespace torpor::executor {

// `what` is the call, for the message.
cuda_api::CallStatus ToCallStatus(const CudaDriver& driver, CUresult result, std::string_view what);

// A driver's error keeps its number; others get the runtime's nearest.
cuda_api::CallStatus ToCallStatus(const absl::Status& status, std::string_view what);

// Of a call whose memory or array is not the session's, or not all of it.
cuda_api::CallStatus NotOwned(std::string_view what);

}  // namespace torpor::executor
