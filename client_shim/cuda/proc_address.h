#pragma once

#include <cuda.h>

namespace torpor::shim {

// Finds the form of `name` in CUDA `version`. For an unknown name, returns CUDA_ERROR_NOT_FOUND if
// `status` is null, else CUDA_SUCCESS with the result in `status`.
CUresult GetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status, bool per_thread);

// Undocumented tables for NVIDIA's own libraries. Offers no table and returns CUDA_ERROR_NOT_FOUND.
CUresult GetExportTable(const void** table, const CUuuid* id);

// CUDA_ERROR_INVALID_VALUE and null for an unknown error. The texts are static.
CUresult GetErrorName(CUresult error, const char** name);
CUresult GetErrorString(CUresult error, const char** text);

}  // namespace torpor::shim
