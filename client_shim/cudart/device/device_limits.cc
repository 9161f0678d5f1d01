// cudaDeviceSetLimit and cudaDeviceGetLimit.
#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

// Limits are journalled like objects, each under a fixed handle, so the next executor gets them
// too.
constexpr std::uint64_t kLimitHandles = std::uint64_t{0xff} << kHandleSerialBits;

cudaError_t SetLimit(cudaLimit limit, std::size_t value) {
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const std::uint64_t handle = kLimitHandles | static_cast<std::uint64_t>(limit);
  const wire::DeviceSetLimit command{static_cast<std::uint32_t>(limit), value};
  return Core().IsLive(handle) ? Core().Configure(handle, Encode(command))
                               : Core().Create(handle, Encode(command));
}

cudaError_t GetLimit(std::size_t* value, cudaLimit limit) {
  if (!value) return cudaErrorInvalidValue;
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
  TORPOR_TRY(Begin());
  wire::DeviceGetLimitResult result;
  TORPOR_TRY(Ask(wire::DeviceGetLimit{static_cast<std::uint32_t>(limit)}, result));
  *value = result.value;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return Entry([&] { return SetLimit(limit, value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  return Entry([&] { return GetLimit(value, limit); });
}
