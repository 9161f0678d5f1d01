#include "client_shim/cudart/launch/launch.h"

#include <array>
#include <cstring>
#include <new>

#include "client_shim/core/thread_end.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/devices.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// The compiler pushes a configuration, evaluates the arguments and pops it: nesting is as deep as
// launches inside argument expressions, that is hardly ever more than one.
struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
constexpr std::size_t kMaxConfigurations = 32;
struct ConfigurationStack {
  std::size_t depth = 0;
  std::array<Configuration, kMaxConfigurations> configurations{};
};
thread_local ConfigurationStack* configuration_stack = nullptr;

void DeleteStack(void* stack) {
  configuration_stack = nullptr;
  delete static_cast<ConfigurationStack*>(stack);
}

// The calling thread's, made at its first launch; null if there is no memory for it. Exit handlers
// may launch too.
ConfigurationStack* Configurations() {
  if (!configuration_stack) {
    configuration_stack = new (std::nothrow) ConfigurationStack();
    static const ThreadEnd thread_end(&DeleteStack);
    if (configuration_stack) thread_end.Arm(configuration_stack);
  }
  return configuration_stack;
}

bool Inside(const dim3& dims, const dim3& most) {
  const auto inside = [](unsigned value, unsigned limit) { return value >= 1 && value <= limit; };
  return inside(dims.x, most.x) && inside(dims.y, most.y) && inside(dims.z, most.z);
}

cudaError_t SendLaunch(Kernel& kernel, const Launch& launch, void** arguments) {
  const ClientCore& core = Core();
  std::array<std::uint8_t, kMaxParameterBytes> parameters;
  std::size_t filled = 0;
  TORPOR_TRY(PackArguments(kernel, arguments, parameters, filled));
  if (IsCapturing(launch.stream)) {
    return Capture(launch.stream, KernelWork{Hold(kernel),
                                             launch.grid,
                                             launch.block,
                                             static_cast<std::uint32_t>(launch.shared_bytes),
                                             launch.flags,
                                             {parameters.begin(), parameters.begin() + filled},
                                             {}});
  }
  StreamPtr stream;
  TORPOR_TRY(UseStream(launch.stream, stream));
  if (&core != &Core()) return cudaErrorInvalidResourceHandle;  // it is another device's
  wire::LaunchKernel command;
  command.kernel = kernel.here().wire;
  command.stream = stream->wire;
  command.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  command.block = {launch.block.x, launch.block.y, launch.block.z};
  command.shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes);
  command.flags = launch.flags;
  command.parameters = {parameters.data(), filled};
  return LaunchWithVariables([&] { return Send(command); });
}

cudaError_t LaunchPrepared(Kernel& kernel, const Launch& launch, void** arguments) {
  TORPOR_TRY(Begin());
  TORPOR_TRY(PrepareKernel(kernel));
  TORPOR_TRY(CheckLaunch(kernel, launch));
  return SendLaunch(kernel, launch, arguments);
}

cudaError_t LaunchKernel(const void* function, const Launch& launch, void** arguments) {
  Kernel* const kernel = FindKernel(function);
  return kernel ? LaunchPrepared(*kernel, launch, arguments) : cudaErrorInvalidDeviceFunction;
}

cudaError_t LaunchExtended(const cudaLaunchConfig_t* config, const void* function, void** arguments,
                           bool per_thread_default) {
  if (!config || (config->numAttrs > 0 && !config->attrs)) return cudaErrorInvalidValue;
  Launch launch{config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, 0};
  if (!launch.stream && per_thread_default) launch.stream = cudaStreamPerThread;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    TORPOR_TRY(ApplyAttribute(config->attrs[i], launch));
  return LaunchKernel(function, launch, arguments);
}

}  // namespace

cudaError_t CheckLaunch(const Kernel& kernel, const Launch& launch) {
  const LaunchLimits& limits = DeviceLaunchLimits();
  if (!Inside(launch.grid, limits.grid) || !Inside(launch.block, limits.block))
    return cudaErrorInvalidConfiguration;
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads > limits.threads_per_block) return cudaErrorInvalidConfiguration;
  if (kernel.entry.max_threads > 0 &&
      threads > static_cast<std::uint64_t>(kernel.entry.max_threads))
    return cudaErrorLaunchOutOfResources;
  if (launch.shared_bytes > kernel.here().max_dynamic_shared) return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t PackArguments(const Kernel& kernel, void** arguments, std::span<std::uint8_t> packed,
                          std::size_t& filled) {
  if (kernel.parameter_bytes > packed.size()) return cudaErrorInvalidValue;
  const std::size_t count = kernel.entry.parameters.size();
  if (!arguments && count > 0) return cudaErrorInvalidValue;
  filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const wire::KernelParameter& parameter = kernel.entry.parameters[i];
    std::memset(packed.data() + filled, 0, parameter.offset - filled);
    std::memcpy(packed.data() + parameter.offset, arguments[i], parameter.bytes);
    filled = parameter.offset + parameter.bytes;
  }
  return cudaSuccess;
}

cudaError_t ApplyAttribute(const cudaLaunchAttribute& attribute, Launch& launch) {
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      if (attribute.val.cooperative != 0) launch.flags |= wire::kLaunchCooperative;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension: {
      const auto& cluster = attribute.val.clusterDim;
      if (cluster.x <= 1 && cluster.y <= 1 && cluster.z <= 1) return cudaSuccess;
      break;
    }
    default:
      break;
  }
  Core().WarnOnce("launch attribute " + std::to_string(attribute.id),
                  "launch attribute " + std::to_string(attribute.id) + " is not supported");
  return cudaErrorNotSupported;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st* stream) {
  const TracedCall traced;
  ConfigurationStack* const stack = Configurations();
  if (!stack || stack->depth == kMaxConfigurations) return 1;
  stack->configurations[stack->depth++] = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  return Entry([&] {
    ConfigurationStack* const stack = Configurations();
    if (!stack || stack->depth == 0) return cudaErrorMissingConfiguration;
    const Configuration& configuration = stack->configurations[--stack->depth];
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = configuration.stream;
    return cudaSuccess;
  });
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return cudaGetKernel(kernel, host_function);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return Entry([&] {
    if (!kernel) return cudaErrorInvalidValue;
    Kernel* const found = FindKernel(host_function);
    if (!found) return cudaErrorInvalidDeviceFunction;
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return cudaSuccess;
  });
}

// Only nvcc's code calls this, with what __cudaGetKernel gave: no look-up.
cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return Entry([&] {
    auto* const kernel = reinterpret_cast<Kernel*>(handle);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    return LaunchPrepared(*kernel, {grid, block, shared_bytes, stream, 0}, arguments);
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return Entry([&] {
    return LaunchKernel(function, {grid, block, shared_bytes, stream, 0}, arguments);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  return Entry([&] {
    return LaunchKernel(
        function, {grid, block, shared_bytes, stream, torpor::wire::kLaunchCooperative}, arguments);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return Entry([&] { return LaunchExtended(config, function, arguments, false); });
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
  return Entry([&] { return LaunchExtended(config, function, arguments, true); });
}
