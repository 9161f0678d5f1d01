#pragma once

#include <cuda.h>

namespace torpor::shim {

// The form of `name` that CUDA `version` had. `status` may be null: then one that is not found is
// CUDA_ERROR_NOT_FOUND, else CUDA_SUCCESS and said there.
CUresult GetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status, bool per_thread);

// Undocumented tables, by which NVIDIA's own libraries reach into NVIDIA's driver: there are none.
CUresult GetExportTable(const void** table, const CUuuid* id);

CUresult GetErrorName(CUresult error, const char** name);
CUresult GetErrorString(CUresult error, const char** text);

}  // namespace torpor::shim
