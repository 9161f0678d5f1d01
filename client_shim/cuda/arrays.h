#pragma once

#include <cuda.h>

namespace torpor::shim {

CUresult CreateArray(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor);
CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor);
CUresult DescribeArray(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array);
CUresult DescribeArray(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array);
// Otherwise than the runtime's these take no null.
CUresult DestroyArray(CUarray array);
CUresult DestroyMipmappedArray(CUmipmappedArray array);

// Asked for more levels than there can be, it has as many as there can.
CUresult CreateMipmappedArray(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                              unsigned levels);
CUresult GetLevel(CUarray* level_array, CUmipmappedArray array, unsigned level);

}  // namespace torpor::shim
