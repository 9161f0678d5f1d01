#include "client_shim/cuda/launches.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "client_shim/cuda/entry.h"
#include "client_shim/cudart/launch/packed_arguments.h"

namespace torpor::shim {
namespace {

// Finds the address of every parameter in the buffer.
CUresult Unpack(CUfunction function, const PackedArguments& packed, std::vector<void*>& pointers) {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  while (Runtime().cudaFuncGetParamInfo(function, pointers.size(), &offset, &bytes) ==
         cudaSuccess) {
    if (offset > packed.count || bytes > packed.count - offset) return CUDA_ERROR_INVALID_VALUE;
    pointers.push_back(const_cast<std::uint8_t*>(packed.bytes) + offset);
  }
  return CUDA_SUCCESS;
}

// Gives `run` a pointer to each argument.
template <typename Run>
CUresult WithParameters(CUfunction function, void** parameters, void** extra, const Run& run) {
  if (!extra) return ToCuResult(run(parameters));
  if (parameters) return CUDA_ERROR_INVALID_VALUE;
  PackedArguments packed;
  if (!ReadPackedArguments(extra, packed)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<void*> pointers;
  TORPOR_CU_TRY(Unpack(function, packed, pointers));
  return ToCuResult(run(pointers.data()));
}

// A callback of the driver API, called by a callback of the runtime.
struct Callback {
  CUstreamCallback function;
  void* data;
};

void CUDART_CB RunCallback(cudaStream_t stream, cudaError_t state, void* data) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->function(stream, ToCuResult(state), callback->data);
}

}  // namespace

CUresult Launch(CUfunction function, const LaunchDimensions& shape, void** parameters,
                void** extra) {
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const auto run = [&](void** arguments) {
    const auto launch =
        shape.is_cooperative ? Runtime().cudaLaunchCooperativeKernel : Runtime().cudaLaunchKernel;
    return launch(function, shape.grid, shape.block, arguments, shape.shared_bytes, shape.stream);
  };
  return WithParameters(function, parameters, extra, run);
}

cudaLaunchConfig_t ToRuntime(const CUlaunchConfig& config) {
  cudaLaunchConfig_t same = {};
  same.gridDim = dim3(config.gridDimX, config.gridDimY, config.gridDimZ);
  same.blockDim = dim3(config.blockDimX, config.blockDimY, config.blockDimZ);
  same.dynamicSmemBytes = config.sharedMemBytes;
  same.stream = config.hStream;
  // Both are the same union with the same numbers under different names.
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  same.attrs = reinterpret_cast<cudaLaunchAttribute*>(config.attrs);
  same.numAttrs = config.numAttrs;
  return same;
}

CUresult LaunchExtended(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void** extra, cudaStream_t default_stream) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  cudaLaunchConfig_t same = ToRuntime(*config);
  if (!same.stream) same.stream = default_stream;
  return WithParameters(function, parameters, extra, [&](void** arguments) {
    return Runtime().cudaLaunchKernelExC(&same, function, arguments);
  });
}

CUresult AddCallback(CUstream stream, CUstreamCallback function, void* data, unsigned flags) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  auto callback = std::make_unique<Callback>(Callback{function, data});
  TORPOR_CU_TRY(Runtime().cudaStreamAddCallback(stream, RunCallback, callback.get(), flags));
  (void)callback.release();  // RunCallback deletes the object
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
