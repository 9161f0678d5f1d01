#include "emulator/driver/submission/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "emulator/driver/base/exec_error.h"
#include "emulator/driver/base/messages.h"
#include "emulator/driver/device/device_limits.h"
#include "emulator/driver/process/driver.h"
#include "emulator/driver/process/planned_faults.h"
#include "emulator/driver/stream/model_clock.h"
#include "emulator/node/model_account.h"

namespace torpor::emulator {
namespace {

LaunchConfig ConfigOf(const LaunchRequest& request) {
  return {.grid = request.grid,
          .block = request.block,
          .dynamic_shared_bytes = request.dynamic_shared_bytes,
          .cooperative = request.cooperative,
          .cluster = request.cluster};
}

// The request with the size of clusters that the function's attributes ask for, if it names none.
LaunchRequest WithRequiredCluster(const FunctionObject& function, LaunchRequest request) {
  if (request.cluster.x == 0 && request.cluster.y == 0 && request.cluster.z == 0) {
    request.cluster = function.required_cluster();
  }
  return request;
}

std::uint64_t CountOf(const Dim3& size) { return std::uint64_t{size.x} * size.y * size.z; }

// Checks a launch against the kernel, the device, and the function's limit of shared memory.
CUresult Validate(const FunctionObject& function, const LaunchRequest& request,
                  const DriverDevice& device) {
  const auto checked = CheckLaunch(function.info(), ConfigOf(request), device.traits());
  if (!checked.ok()) return ToCuResult(checked.failure().code);
  const Dim3 cluster = ClusterOf(function.info(), ConfigOf(request));
  if (CountOf(cluster) > function.max_cluster_blocks()) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return request.dynamic_shared_bytes > function.max_dynamic_shared() ? CUDA_ERROR_INVALID_VALUE
                                                                      : CUDA_SUCCESS;
}

// Copies the parameters into one buffer; `values` may change afterwards.
CUresult PackValues(const KernelInfo& info, void** values, std::vector<std::byte>& packed) {
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const auto& [offset, size] = info.parameters[i];
    if (values[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(packed.data() + offset, values[i], size);
  }
  return CUDA_SUCCESS;
}

// Takes the packed parameters from a CU_LAUNCH_PARAM_... list.
CUresult PackExtra(void** extra, std::vector<std::byte>& packed) {
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (buffer == nullptr) return packed.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  std::memcpy(packed.data(), buffer, std::min(size, packed.size()));
  return CUDA_SUCCESS;
}

// Packs the parameters from the form that the caller used.
CUresult PackParameters(const KernelInfo& info, void** values, void** extra,
                        std::vector<std::byte>& packed) {
  packed.resize(info.parameter_bytes);
  if (values != nullptr) return PackValues(info, values, packed);
  if (extra != nullptr) return PackExtra(extra, packed);
  return info.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A failed assertion is said on stderr by NVIDIA's driver, whoever listens to its log.
void Tell(const Failure<ExecError>& failure) {
  if (failure.code == ExecError::kAssert && Driver::Get().topology().strict.log_failures) {
    std::fprintf(stderr, "%s\n", failure.message.c_str());
  } else {
    Say(failure.message);
  }
}

// Runs a kernel to its end on the stream's thread.
CUresult RunKernel(Program& program, const KernelInfo& info, const LaunchRequest& request,
                   const std::vector<std::byte>& parameters) {
  LaunchConfig config = ConfigOf(request);
  config.parameters = parameters.data();
  const auto ran = program.Launch(info.name, config);
  if (ran.ok()) return CUDA_SUCCESS;
  Tell(ran.failure());
  // A launch that Validate accepted and exec refuses failed by the kernel's own fault.
  const CUresult result = ToCuResult(ran.failure().code);
  return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_LAUNCH_FAILED : result;
}

// Runs a kernel that takes `duration` in the model. Modelled kernels of one GPU take turns.
template <typename Run>
CUresult RunModelled(unsigned place, Duration duration, const Run& run) {
  SharedNodeState& node = Driver::Get().node();
  const TimePoint begun = ModelClock::Begun();
  const TimePoint ready = ModelClock::Ready();
  const TimePoint end = node.kernels[place].Reserve(ready, duration);
  const CUresult result = run();
  if (result != CUDA_SUCCESS) return result;
  Note(node.kernels_done, end - ready, ModelClock::Reach(end) - begun);
  return result;
}

// Submits the modelled duration of a kernel that is not computed.
void SubmitTime(const StreamTarget& target, Duration duration) {
  target.context->Submit(
      target.stream,
      [duration, place = target.context->device().spec().place] {
        return RunModelled(place, duration, [] { return CUDA_SUCCESS; });
      },
      Stream::Placement::kQueue);
}

}  // namespace

LaunchRequest RequestOf(const CUlaunchConfig& config) {
  LaunchRequest request{.grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
                        .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
                        .dynamic_shared_bytes = config.sharedMemBytes};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      request.cooperative = attribute.value.cooperative != 0;
    } else if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = attribute.value.clusterDim;
      request.cluster = {cluster.x, cluster.y, cluster.z};
    }
  }
  return request;
}

CUresult Launch(const StreamTarget& target, CUfunction handle, const LaunchRequest& given,
                void** values, void** extra) {
  FunctionObject* function = Driver::Get().functions().Get(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const LaunchRequest request = WithRequiredCluster(*function, given);
  const KernelInfo& info = function->info();
  DriverDevice& device = target.context->device();
  const CostedCall cost(device.call_costs(), device.call_costs().costs().launch_us);
  TORPOR_TRY(Validate(*function, request, device));
  if (request.cooperative) {
    int blocks = 0;
    ActiveBlocks(handle, static_cast<int>(request.block.x * request.block.y * request.block.z),
                 request.dynamic_shared_bytes, device, blocks);
    const std::uint64_t wanted = std::uint64_t{request.grid.x} * request.grid.y * request.grid.z;
    if (wanted > static_cast<std::uint64_t>(blocks) * device.spec().multiprocessors) {
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
  }
  std::vector<std::byte> parameters;
  if (const CUresult packed = PackParameters(info, values, extra, parameters);
      packed != CUDA_SUCCESS) {
    return packed;
  }
  MeetPlan(CallKind::kLaunch, target);
  const auto modelled = Driver::Get().kernel_times().Of(info.name);
  if (!Driver::Get().topology().computes) {
    if (modelled) SubmitTime(target, *modelled);
    return CUDA_SUCCESS;
  }
  TORPOR_TRY(target.context->limits().Use(info));
  // As in CUDA's lazy loading, a kernel's first launch loads it, which waits for the context.
  if (!function->loaded() && device.strict().launch_queues) target.context->WaitAll();
  function->MarkLoaded();
  // Here, so that the caller learns of unknown instructions.
  TORPOR_TRY(function->Compile(request.block));
  target.context->WaitForQueue(target.stream);
  target.context->Submit(
      target.stream,
      [program = function->program(), &info, request, parameters = std::move(parameters), modelled,
       place = device.spec().place] {
        const auto run = [&] { return RunKernel(*program, info, request, parameters); };
        return modelled ? RunModelled(place, *modelled, run) : run();
      },
      Stream::Placement::kQueue);
  return CUDA_SUCCESS;
}

// Shared memory, registers and threads of a multiprocessor bound the blocks.
CUresult ActiveBlocks(CUfunction handle, int threads, size_t dynamic_shared_bytes,
                      const DriverDevice& device, int& blocks) {
  const FunctionObject* function = Driver::Get().functions().Get(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const KernelInfo& info = function->info();
  const Bytes shared = info.static_shared_bytes + dynamic_shared_bytes;
  if (threads > static_cast<int>(info.max_threads_per_block) ||
      shared > device.traits().shared_bytes_per_block) {
    blocks = 0;
    return CUDA_SUCCESS;
  }
  const int rounded = (threads + 31) / 32 * 32;
  const int by_registers =
      kRegistersPerMultiprocessor / (static_cast<int>(std::max(info.registers, 1U)) * rounded);
  const int by_shared =
      static_cast<int>(kSharedPerMultiprocessor / (shared + kSharedReservedPerBlock));
  blocks = std::min({kMaxBlocksPerMultiprocessor, kMaxThreadsPerMultiprocessor / rounded,
                     by_registers, by_shared});
  return CUDA_SUCCESS;
}

// A cluster may take any multiprocessors: the device is one processing cluster.
CUresult ActiveClusters(CUfunction handle, const LaunchRequest& given, const DriverDevice& device,
                        int& clusters) {
  const FunctionObject* function = Driver::Get().functions().Get(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const LaunchRequest request = WithRequiredCluster(*function, given);
  TORPOR_TRY(Validate(*function, request, device));
  int blocks = 0;
  TORPOR_TRY(ActiveBlocks(handle, static_cast<int>(CountOf(request.block)),
                          request.dynamic_shared_bytes, device, blocks));
  const auto all = static_cast<std::uint64_t>(blocks) * device.spec().multiprocessors;
  clusters = static_cast<int>(all / CountOf(ClusterOf(function->info(), ConfigOf(request))));
  return CUDA_SUCCESS;
}

CUresult LargestCluster(CUfunction handle, const LaunchRequest& request, const DriverDevice& device,
                        int& blocks) {
  const FunctionObject* function = Driver::Get().functions().Get(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device.spec().compute_capability < kFirstClusterCapability) return CUDA_ERROR_NOT_SUPPORTED;
  int resident = 0;
  TORPOR_TRY(ActiveBlocks(handle, static_cast<int>(CountOf(request.block)),
                          request.dynamic_shared_bytes, device, resident));
  const auto all = static_cast<std::uint64_t>(resident) * device.spec().multiprocessors;
  blocks = static_cast<int>(std::min<std::uint64_t>(all, function->max_cluster_blocks()));
  return CUDA_SUCCESS;
}

Bytes AvailableDynamicShared(const FunctionObject& function, const DriverDevice& device,
                             int blocks) {
  const Bytes used = function.info().static_shared_bytes;
  const Bytes share = kSharedPerMultiprocessor / static_cast<unsigned>(blocks);
  const Bytes free = share - std::min(share, kSharedReservedPerBlock + used);
  const Bytes limit = device.traits().shared_bytes_per_block;
  return std::min(free, limit - std::min(limit, used));
}

}  // namespace torpor::emulator
