#include "server/executor/runtime/limit_calls.h"

#include <driver_types.h>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

CallStatus UnknownLimit(std::uint32_t limit) {
  return CallFailed(cudaErrorUnsupportedLimit, absl::StrCat("there is no limit ", limit));
}

}  // namespace

CallStatus LimitCalls::DeviceSetLimit(const wire::DeviceSetLimit& command) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto limit = static_cast<CUlimit>(command.limit);
  const CudaDriver& driver = device_.driver();
  std::size_t current = 0;
  CUresult result = driver.CtxGetLimit(&current, limit);
  if (result == CUDA_SUCCESS && command.value > current) {
    result = driver.CtxSetLimit(limit, command.value);
  }
  if (result == CUDA_SUCCESS) limits_[command.limit] = command.value;
  return ToCallStatus(driver, result, "cudaDeviceSetLimit");
}

CallStatus LimitCalls::DeviceGetLimit(const wire::DeviceGetLimit& command,
                                      wire::DeviceGetLimitResult& result) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto own = limits_.find(command.limit);
  if (own != limits_.end()) {
    result.value = own->second;
    return {};
  }
  std::size_t value = 0;
  const CUresult outcome =
      device_.driver().CtxGetLimit(&value, static_cast<CUlimit>(command.limit));
  result.value = value;
  return ToCallStatus(device_.driver(), outcome, "cudaDeviceGetLimit");
}

}  // namespace torpor::executor
