#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// Finds the allocation that contains `address`; CUDA_ERROR_NOT_FOUND if there is none. `base` or
// `bytes` may be null.
CUresult GetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address);

// Writes the attribute to `data`, in the type that CUDA documents for the attribute. Returns
// CUDA_ERROR_INVALID_VALUE for an address outside of CUDA's memory.
CUresult GetPointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address);
// As GetPointerAttribute for several attributes. An address outside of CUDA's memory is no error:
// the attributes are zero, the device ordinal is -2.
CUresult GetPointerAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address);

}  // namespace torpor::shim
