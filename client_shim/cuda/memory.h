#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// Either pointer may be null.
CUresult GetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address);

CUresult GetPointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address);
// Of an address that is no memory of CUDA's every attribute is zero, which is no error.
CUresult GetPointerAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address);

}  // namespace torpor::shim
