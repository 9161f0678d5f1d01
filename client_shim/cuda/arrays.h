#pragma once

#include <cuda.h>

namespace torpor::shim {

// CUDA arrays of the current device, created through the runtime. Extents count texels; a height or
// depth of zero makes an array of fewer dimensions. Formats that the runtime cannot express are
// refused with CUDA_ERROR_NOT_SUPPORTED. DescribeArray returns the descriptor at creation.
CUresult CreateArray(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor);
CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor);
CUresult DescribeArray(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array);
CUresult DescribeArray(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array);
// Unlike the runtime's functions these reject null, with CUDA_ERROR_INVALID_HANDLE.
CUresult DestroyArray(CUarray array);
CUresult DestroyMipmappedArray(CUmipmappedArray array);

// Creates at most as many levels as the extent allows, like CUDA.
CUresult CreateMipmappedArray(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                              unsigned levels);
// Returns one level as an array, which lives as long as the mipmapped array.
CUresult GetLevel(CUarray* level_array, CUmipmappedArray array, unsigned level);

}  // namespace torpor::shim
