#include "client_shim/cuda/proc_address.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "client_shim/cuda/driver_tables.h"
#include "client_shim/cuda/entry.h"

namespace torpor::shim {
namespace {

// The newest form of the function in CUDA `version`; null if that version had no such function.
const DriverFunction* Find(const char* name, int version) {
  const DriverFunction* found = nullptr;
  for (const DriverFunction& function : DriverFunctions())
    if (function.cuda_version <= version && std::strcmp(function.name, name) == 0)
      found = &function;
  return found;
}

}  // namespace

CUresult GetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status, bool per_thread) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_GET_PROC_ADDRESS_LEGACY_STREAM) != 0) per_thread = false;
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) per_thread = true;
  const DriverFunction* const found = Find(name, version);
  *function = nullptr;
  if (found) *function = per_thread && found->per_thread ? found->per_thread : found->function;
  if (!status) return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  *status = found                 ? CU_GET_PROC_ADDRESS_SUCCESS
            : Find(name, INT_MAX) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

CUresult GetExportTable(const void** table, const CUuuid* id) {
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult GetErrorName(CUresult error, const char** name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const auto names = DriverErrorNames();
  const auto found = std::ranges::find_if(
      names, [&](const DriverErrorName& entry) { return entry.code == error; });
  *name = found == names.end() ? nullptr : found->name;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult GetErrorString(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const char* name = nullptr;
  *text = nullptr;
  TORPOR_CU_TRY(GetErrorName(error, &name));
  // The runtime has the driver's texts but for errors of the driver API alone.
  *text = Runtime().cudaGetErrorString(static_cast<cudaError_t>(error));
  if (std::strcmp(*text, "unrecognized error code") == 0) *text = name;
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
