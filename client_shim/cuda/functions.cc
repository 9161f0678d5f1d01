#include "client_shim/cuda/functions.h"

#include <algorithm>

#include "client_shim/cuda/devices.h"
#include "client_shim/cuda/entry.h"
#include "client_shim/cuda/launches.h"

namespace torpor::shim {
namespace {

constexpr CUdevice kDevice = 0;

CUresult ActiveBlocks(int& blocks, CUfunction function, int block_size, std::size_t shared,
                      unsigned flags) {
  return ToCuResult(Runtime().cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      &blocks, function, block_size, shared, flags));
}

CUresult Attribute(CUdevice_attribute attribute, int& value) {
  return GetDeviceAttribute(&value, attribute, kDevice);
}

// The attribute's value in `all`; null if kernels have no such attribute.
const int* Find(const cudaFuncAttributes& all, CUfunction_attribute attribute) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return &all.maxThreadsPerBlock;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return &all.numRegs;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return &all.ptxVersion;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return &all.binaryVersion;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return &all.cacheModeCA;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return &all.maxDynamicSharedSizeBytes;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return &all.preferredShmemCarveout;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return &all.clusterDimMustBeSet;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return &all.requiredClusterWidth;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return &all.requiredClusterHeight;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return &all.requiredClusterDepth;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return &all.nonPortableClusterSizeAllowed;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return &all.clusterSchedulingPolicyPreference;
    default:
      return nullptr;
  }
}

}  // namespace

CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, const void* function) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  cudaFuncAttributes all;
  TORPOR_CU_TRY(Runtime().cudaFuncGetAttributes(&all, function));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(all.sharedSizeBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(all.constSizeBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(all.localSizeBytes);
      return CUDA_SUCCESS;
    default:
      break;
  }
  const int* const found = Find(all, attribute);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  *value = *found;
  return CUDA_SUCCESS;
}

CUresult GetFunctionName(const char** name, CUfunction function) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return ToCuResult(Runtime().cudaFuncGetName(name, function));
}

CUresult GetParameter(CUfunction function, std::size_t index, std::size_t* offset,
                      std::size_t* bytes) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  return ToCuResult(Runtime().cudaFuncGetParamInfo(function, index, offset, bytes));
}

CUresult GetLoadingState(CUfunctionLoadingState* state, CUfunction function) {
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(LoadFunction(function));
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult LoadFunction(CUfunction function) {
  const char* name = nullptr;
  return ToCuResult(Runtime().cudaFuncGetName(&name, function));
}

CUresult FindBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                       std::size_t shared, int max_block, unsigned flags) {
  if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
  int warp = 0;
  int processors = 0;
  int limit = 0;
  TORPOR_CU_TRY(Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, warp));
  TORPOR_CU_TRY(Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, processors));
  TORPOR_CU_TRY(GetFunctionAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  if (max_block > 0) limit = std::min(limit, max_block);
  int max_threads = 0;
  *grid = *block = 0;
  // Tries blocks of whole warps and the limit; of two equally good blocks the larger wins.
  for (int size = limit; size > 0; size = (size - 1) / warp * warp) {
    int blocks = 0;
    const std::size_t bytes = shared_of ? shared_of(size) : shared;
    TORPOR_CU_TRY(ActiveBlocks(blocks, function, size, bytes, flags));
    if (blocks * size <= max_threads) continue;
    max_threads = blocks * size;
    *block = size;
    *grid = blocks * processors;
  }
  return CUDA_SUCCESS;
}

CUresult FindSharedMemory(std::size_t* shared, CUfunction function, int blocks, int block_size) {
  if (!shared || blocks <= 0) return CUDA_ERROR_INVALID_VALUE;
  int max_bytes = 0;
  TORPOR_CU_TRY(
      GetFunctionAttribute(&max_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  // The larger a block's share, the fewer blocks fit: finds the last size with enough blocks.
  std::size_t fits = 0;
  std::size_t too_much = static_cast<std::size_t>(max_bytes) + 1;
  while (too_much - fits > 1) {
    const std::size_t middle = fits + (too_much - fits) / 2;
    int active = 0;
    TORPOR_CU_TRY(ActiveBlocks(active, function, block_size, middle, 0));
    (active >= blocks ? fits : too_much) = middle;
  }
  *shared = fits;
  return CUDA_SUCCESS;
}

CUresult GetActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  const cudaLaunchConfig_t same = ToRuntime(*config);
  return ToCuResult(Runtime().cudaOccupancyMaxActiveClusters(clusters, function, &same));
}

CUresult GetLargestCluster(int* blocks, CUfunction function, const CUlaunchConfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  const cudaLaunchConfig_t same = ToRuntime(*config);
  return ToCuResult(Runtime().cudaOccupancyMaxPotentialClusterSize(blocks, function, &same));
}

}  // namespace torpor::shim
