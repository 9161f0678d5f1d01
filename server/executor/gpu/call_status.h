#pragma once

#include <cuda.h>

#include <string_view>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "server/executor/gpu/cuda_driver.h"

// Results of the runtime's calls, for the client.
namespace torpor::executor {

// `what` names the call for the message.
cuda_api::CallStatus ToCallStatus(const CudaDriver& driver, CUresult result, std::string_view what);

// Keeps the number of a driver's error; any other error gets the nearest error of the runtime.
cuda_api::CallStatus ToCallStatus(const absl::Status& status, std::string_view what);

// Returns the status of a call whose memory or array does not belong, in whole, to the session.
cuda_api::CallStatus NotOwned(std::string_view what);

}  // namespace torpor::executor
