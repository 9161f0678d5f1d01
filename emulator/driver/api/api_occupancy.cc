// Occupancy: how much of a kernel fits a multiprocessor.
#include <algorithm>

#include "emulator/driver/api/api.h"
#include "emulator/driver/submission/launch.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

extern "C" {

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, CUfunction function, int threads, size_t shared_bytes, unsigned int) {
  return InContext([&](Context& context) {
    if (blocks == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return ActiveBlocks(function, threads, shared_bytes, context.device(), *blocks);
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                             int threads, size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                              shared_bytes, 0);
}

// Tries block sizes in steps of a warp and takes the best.
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block,
                                                           CUfunction function,
                                                           CUoccupancyB2DSize shared_of_block,
                                                           size_t shared_bytes, int limit,
                                                           unsigned int) {
  return InContext([&](Context& context) {
    const FunctionObject* found = Driver::Get().functions().Get(function);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int largest = static_cast<int>(found->info().max_threads_per_block);
    if (limit > 0) largest = std::min(largest, limit);
    int best_threads = 0;
    for (int threads = largest; threads > 0; threads = (threads - 1) / 32 * 32) {
      const size_t shared = shared_of_block != nullptr ? shared_of_block(threads) : shared_bytes;
      int blocks = 0;
      const CUresult result = ActiveBlocks(function, threads, shared, context.device(), blocks);
      if (result != CUDA_SUCCESS) return result;
      if (blocks * threads <= best_threads) continue;
      best_threads = blocks * threads;
      *block = threads;
      *grid = blocks * static_cast<int>(context.device().spec().multiprocessors);
    }
    return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize shared_of_block,
                                                  size_t shared_bytes, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of_block,
                                                   shared_bytes, limit, 0);
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                              const CUlaunchConfig* config) {
  return InContext([&](Context& context) {
    if (clusters == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return ActiveClusters(function, RequestOf(*config), context.device(), *clusters);
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction function,
                                                    const CUlaunchConfig* config) {
  return InContext([&](Context& context) {
    if (blocks == nullptr || config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return LargestCluster(function, RequestOf(*config), context.device(), *blocks);
  });
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function,
                                                         int blocks, int threads) {
  return InContext([&](Context& context) {
    const FunctionObject* found = Driver::Get().functions().Get(function);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *bytes = AvailableDynamicShared(*found, context.device(), blocks);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
