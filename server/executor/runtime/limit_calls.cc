#include "server/executor/runtime/limit_calls.h"

#include <driver_types.h>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/gpu/cuda_status.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

constexpr const char* kSetLimit = "cudaDeviceSetLimit";
// A function's heap or print buffer takes at most one part in so many of the GPU from all others.
constexpr Bytes kMostShare = 16;

bool IsMemory(CUlimit limit) {
  return limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE;
}

CallStatus UnknownLimit(std::uint32_t limit) {
  return CallFailed(cudaErrorUnsupportedLimit, absl::StrCat("there is no limit ", limit));
}

}  // namespace

CallStatus LimitCalls::DeviceSetLimit(const wire::DeviceSetLimit& command) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto limit = static_cast<CUlimit>(command.limit);
  const CudaDriver& driver = device_.driver();
  std::size_t current = 0;
  if (const CUresult read = driver.CtxGetLimit(&current, limit); read != CUDA_SUCCESS) {
    return ToCallStatus(driver, read, kSetLimit);
  }
  if (command.value > current) {
    const Bytes most = device_.properties().total_bytes / kMostShare;
    const bool is_too_much = IsMemory(limit) && command.value > most;
    const CUresult raised =
        is_too_much ? CUDA_ERROR_INVALID_VALUE
                    : device_.MakingRoom([&] { return driver.CtxSetLimit(limit, command.value); });
    if (raised != CUDA_SUCCESS) {
      return CallFailed(
          ToRuntimeError(raised),
          absl::StrCat(kSetLimit, ": limit ", command.limit, " cannot rise from ", current, " to ",
                       command.value, " on a GPU that functions share; ask for less"));
    }
  }
  limits_[command.limit] = command.value;
  return {};
}

CallStatus LimitCalls::DeviceGetLimit(const wire::DeviceGetLimit& command,
                                      wire::DeviceGetLimitResult& result) {
  if (command.limit >= CU_LIMIT_MAX) return UnknownLimit(command.limit);
  const auto limit = static_cast<CUlimit>(command.limit);
  std::size_t shared = 0;  // of all functions; asked for the sake of a lost context's error
  if (const CUresult read = device_.driver().CtxGetLimit(&shared, limit); read != CUDA_SUCCESS) {
    return ToCallStatus(device_.driver(), read, "cudaDeviceGetLimit");
  }
  const auto own = limits_.find(command.limit);
  result.value = own != limits_.end() ? own->second : device_.default_limit(limit);
  return {};
}

}  // namespace torpor::executor
