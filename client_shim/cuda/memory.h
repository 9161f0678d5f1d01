#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// `base` or `bytes` may be null.
CUresult GetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address);

CUresult GetPointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address);
// An address outside of CUDA's memory has zero for every attribute and is no error.
CUresult GetPointerAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address);

}  // namespace torpor::shim
