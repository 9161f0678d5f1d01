#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// `function` is a CUfunction or a CUkernel.
CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, const void* function);
CUresult GetLoadingState(CUfunctionLoadingState* state, CUfunction function);
CUresult LoadFunction(CUfunction function);

// The block size with which most threads are active on a multiprocessor, and the smallest grid
// that then fills the device.
CUresult FindBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                       std::size_t shared, int most, unsigned flags);
// The most dynamic shared memory with which `blocks` of `block_size` threads are active together.
CUresult FindSharedMemory(std::size_t* shared, CUfunction function, int blocks, int block_size);

}  // namespace torpor::shim
