#pragma once

#include <cuda.h>

namespace torpor::shim {

CUresult CreateArray(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor);
CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor);
CUresult DescribeArray(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array);
CUresult DescribeArray(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array);
// Unlike the runtime's functions these reject null.
CUresult DestroyArray(CUarray array);
CUresult DestroyMipmappedArray(CUmipmappedArray array);

// Creates at most as many levels as the extent allows, like CUDA.
CUresult CreateMipmappedArray(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                              unsigned levels);
CUresult GetLevel(CUarray* level_array, CUmipmappedArray array, unsigned level);

}  // namespace torpor::shim
