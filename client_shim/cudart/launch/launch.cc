#include "client_shim/cudart/launch/launch.h"

#include <array>
#include <cstring>
#include <new>

#include "client_shim/core/thread_end.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/devices.h"
#include "client_shim/cudart/launch/clusters.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/stream/streams.h"
#include "client_shim/cudart/stream/submit.h"

namespace torpor::shim {
namespace {

// A configuration pushed by nvcc's code for f<<<...>>>(arguments), popped after evaluating the
// arguments. Nesting is as deep as launches inside argument expressions: hardly ever over one.
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

// Runs at the end of the thread.
void DeleteStack(void* stack) {
  configuration_stack = nullptr;
  delete static_cast<ConfigurationStack*>(stack);
}

// The calling thread's stack, allocated at the thread's first launch; null without memory. Exit
// handlers may launch too.
ConfigurationStack* Configurations() {
  if (!configuration_stack) {
    configuration_stack = new (std::nothrow) ConfigurationStack();
    static const ThreadEnd thread_end(&DeleteStack);
    if (configuration_stack) thread_end.Arm(configuration_stack);
  }
  return configuration_stack;
}

// Whether all three dimensions are in [1, limit].
bool Inside(const dim3& dims, const dim3& max) {
  const auto inside = [](unsigned value, unsigned limit) { return value >= 1 && value <= limit; };
  return inside(dims.x, max.x) && inside(dims.y, max.y) && inside(dims.z, max.z);
}

// The work of a checked launch. Refers to the caller's kernel, configuration and packed arguments.
class LaunchWork {
 public:
  LaunchWork(ClientKernel& kernel, const Launch& launch, std::span<const std::uint8_t> parameters)
      : kernel_(kernel), launch_(launch), parameters_(parameters), core_(Core()) {}

  cudaError_t MakeNode(NodeWork& node) const {
    node = KernelWork{Hold(kernel_),
                      launch_.grid,
                      launch_.block,
                      static_cast<std::uint32_t>(launch_.shared_bytes),
                      launch_.flags,
                      {parameters_.begin(), parameters_.end()},
                      {}};
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    if (&core_ != &Core()) return cudaErrorInvalidResourceHandle;  // another device's stream
    wire::LaunchKernel command = LaunchCommand(kernel_, launch_, parameters_);
    command.stream = stream->wire;
    return LaunchWithVariables([&] { return shim::Send(command); });
  }

 private:
  ClientKernel& kernel_;
  const Launch& launch_;
  const std::span<const std::uint8_t> parameters_;
  const ClientCore& core_;  // of the device that has the kernel ready
};

// Every launch comes here: loads the kernel if necessary, checks, packs the arguments, submits.
cudaError_t LaunchPrepared(ClientKernel& kernel, const Launch& launch, void** arguments) {
  TORPOR_TRY(Begin());
  TORPOR_TRY(PrepareKernel(kernel));
  TORPOR_TRY(CheckLaunch(kernel, launch));
  std::array<std::uint8_t, kMaxParameterBytes> parameters;
  std::size_t filled = 0;
  TORPOR_TRY(PackArguments(kernel, arguments, parameters, filled));
  return Submit(launch.stream, LaunchWork(kernel, launch, {parameters.data(), filled}));
}

// Finds the kernel by host function or cudaKernel_t.
cudaError_t LaunchKernel(const void* function, const Launch& launch, void** arguments) {
  ClientKernel* const kernel = FindKernel(function);
  return kernel ? LaunchPrepared(*kernel, launch, arguments) : cudaErrorInvalidDeviceFunction;
}

// Launches with attributes. `per_thread_default`: a null stream is the thread's default stream.
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

cudaError_t CheckLaunch(const ClientKernel& kernel, const Launch& launch) {
  const LaunchLimits& limits = DeviceLaunchLimits();
  if (!Inside(launch.grid, limits.grid) || !Inside(launch.block, limits.block))
    return cudaErrorInvalidConfiguration;
  const std::uint64_t threads = std::uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads > limits.threads_per_block) return cudaErrorInvalidConfiguration;
  if (kernel.entry.max_threads > 0 &&
      threads > static_cast<std::uint64_t>(kernel.entry.max_threads))
    return cudaErrorLaunchOutOfResources;
  if (launch.shared_bytes > kernel.here().max_dynamic_shared) return cudaErrorInvalidValue;
  return CheckClusters(kernel, launch);
}

wire::LaunchKernel LaunchCommand(const ClientKernel& kernel, const Launch& launch,
                                 std::span<const std::uint8_t> parameters) {
  wire::LaunchKernel command;
  command.kernel = kernel.here().wire;
  command.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  command.block = {launch.block.x, launch.block.y, launch.block.z};
  command.shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes);
  command.flags = launch.flags;
  command.parameters = parameters;
  return command;
}

cudaError_t PackArguments(const ClientKernel& kernel, void** arguments,
                          std::span<std::uint8_t> packed, std::size_t& filled) {
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
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      if (attribute.val.cooperative != 0) launch.flags |= wire::kLaunchCooperative;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension: {
      const auto& cluster = attribute.val.clusterDim;
      return SetClusterSize({cluster.x, cluster.y, cluster.z}, launch.flags);
    }
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      return SetClusterPolicy(attribute.val.clusterSchedulingPolicyPreference, launch.flags);
    default:
      break;
  }
  Core().WarnOnce("launch attribute " + std::to_string(attribute.id),
                  "launch attribute " + std::to_string(attribute.id) + " is not supported");
  return cudaErrorNotSupported;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Returns 1 instead of an error code; nvcc's code then skips the launch.
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

// A cudaKernel_t is the ClientKernel's address. Loads nothing.
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return Entry([&] {
    if (!kernel) return cudaErrorInvalidValue;
    ClientKernel* const found = FindKernel(host_function);
    if (!found) return cudaErrorInvalidDeviceFunction;
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return cudaSuccess;
  });
}

// Called only by nvcc's code with a result of __cudaGetKernel, so no look-up is needed. NVIDIA's
// runtime tells a bad configuration as the driver does here, and otherwise in cudaLaunchKernel.
cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return Entry([&] {
    auto* const kernel = reinterpret_cast<ClientKernel*>(handle);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    const cudaError_t error =
        LaunchPrepared(*kernel, {grid, block, shared_bytes, stream, 0}, arguments);
    return error == cudaErrorInvalidConfiguration ? cudaErrorInvalidValue : error;
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
