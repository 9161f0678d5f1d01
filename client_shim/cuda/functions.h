#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// `function` is a CUfunction or a CUkernel. Returns CUDA_ERROR_INVALID_VALUE for attributes of
// other objects than kernels.
CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, const void* function);
// As cudaFuncGetName and cudaFuncGetParamInfo, but no function is CUDA_ERROR_INVALID_VALUE.
CUresult GetFunctionName(const char** name, CUfunction function);
CUresult GetParameter(CUfunction function, std::size_t index, std::size_t* offset,
                      std::size_t* bytes);
// Loads the function first, so that the state is always "loaded".
CUresult GetLoadingState(CUfunctionLoadingState* state, CUfunction function);
CUresult LoadFunction(CUfunction function);

// Finds the block size with the most active threads on a multiprocessor, and the smallest grid of
// such blocks that fills the device. `shared_of` gives the dynamic shared memory of a block size in
// bytes; if null, every block has `shared` bytes. `max_block` limits the block size; 0 means no
// limit.
CUresult FindBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                       std::size_t shared, int max_block, unsigned flags);
// Finds the most dynamic shared memory, in bytes, with which `blocks` blocks of `block_size`
// threads are active together.
CUresult FindSharedMemory(std::size_t* shared, CUfunction function, int blocks, int block_size);
// As cudaOccupancyMaxActiveClusters and cudaOccupancyMaxPotentialClusterSize.
CUresult GetActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config);
CUresult GetLargestCluster(int* blocks, CUfunction function, const CUlaunchConfig* config);

}  // namespace torpor::shim
