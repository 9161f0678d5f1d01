// Error names, log callbacks, function addresses, and the answer of unsupported functions.
#include <algorithm>
#include <climits>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/generated.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace torpor::emulator {

int NotSupported(const char* function) {
  static std::mutex mutex;
  static std::set<std::string>* const said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(function).second) Say(std::string(function) + " is not supported");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace torpor::emulator

namespace {

// The texts of NVIDIA's driver for common errors; null for others.
const char* Describe(CUresult error) {
  switch (error) {
    case CUDA_SUCCESS:
      return "no error";
    case CUDA_ERROR_INVALID_VALUE:
      return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "initialization error";
    case CUDA_ERROR_DEINITIALIZED:
      return "driver shutting down";
    case CUDA_ERROR_NO_DEVICE:
      return "no CUDA-capable device is detected";
    case CUDA_ERROR_INVALID_DEVICE:
      return "invalid device ordinal";
    case CUDA_ERROR_INVALID_IMAGE:
      return "device kernel image is invalid";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "invalid device context";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "no kernel image is available for execution on the device";
    case CUDA_ERROR_INVALID_PTX:
      return "a PTX JIT compilation failed";
    case CUDA_ERROR_FILE_NOT_FOUND:
      return "file not found";
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "OS call failed or operation not supported on this OS";
    case CUDA_ERROR_INVALID_HANDLE:
      return "invalid resource handle";
    case CUDA_ERROR_NOT_FOUND:
      return "named symbol not found";
    case CUDA_ERROR_NOT_READY:
      return "device not ready";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "an illegal memory access was encountered";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "too many resources requested for launch";
    case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
      return "peer access is already enabled";
    case CUDA_ERROR_PEER_ACCESS_NOT_ENABLED:
      return "peer access has not been enabled";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "context is destroyed";
    case CUDA_ERROR_ASSERT:
      return "device-side assert triggered";
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
      return "part or all of the requested memory range is already mapped";
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
      return "pointer does not correspond to a registered memory region";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "misaligned address";
    case CUDA_ERROR_LAUNCH_FAILED:
      return "unspecified launch failure";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return "too many blocks in cooperative launch";
    case CUDA_ERROR_NOT_SUPPORTED:
      return "operation not supported";
    case CUDA_ERROR_UNKNOWN:
      return "unknown error";
    default:
      return nullptr;
  }
}

// Returns the name of an error, such as "CUDA_SUCCESS", or null.
const char* NameOf(CUresult error) {
  for (const ErrorName& entry : ErrorNames()) {
    if (entry.code == static_cast<int>(error)) return entry.name;
  }
  return nullptr;
}

// Returns the newest form of `name` in `cuda_version`, or null.
const ApiEntry* FindEntry(const char* name, int cuda_version) {
  const ApiEntry* best = nullptr;
  for (const ApiEntry& entry : ApiEntries()) {
    if (std::strcmp(entry.name, name) == 0 && entry.cuda_version <= cuda_version) best = &entry;
  }
  return best;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = NameOf(error);
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = Describe(error);
  if (*text == nullptr) *text = NameOf(error);
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callback, void* data,
                                        CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUlogsCallbackHandle listener = AddListener(callback, data);
  if (handle != nullptr) *handle = listener;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return RemoveListener(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int cuda_version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const ApiEntry* entry = FindEntry(name, cuda_version);
  if (entry != nullptr) {
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 &&
                            entry->per_thread != nullptr;
    *function = reinterpret_cast<void*>(per_thread ? entry->per_thread : entry->function);
  }
  if (status != nullptr) {
    const bool later = entry == nullptr && FindEntry(name, INT_MAX) != nullptr;
    *status = entry != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : later          ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
  }
  return entry != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress_v2
// cuGetProcAddress of a program compiled with --default-stream per-thread.
CUresult CUDAAPI cuGetProcAddress_v2_ptsz(const char* name, void** function, int cuda_version,
                                          cuuint64_t flags,
                                          CUdriverProcAddressQueryResult* status) {
  if ((flags & CU_GET_PROC_ADDRESS_LEGACY_STREAM) == 0) {
    flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  }
  return cuGetProcAddress_v2(name, function, cuda_version, flags, status);
}

}  // extern "C"
