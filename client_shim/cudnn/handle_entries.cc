#include "client_shim/c_entry.h"
#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/overrides.h"
#include "client_shim/stream_work.h"

// Handles, and entries with the same answer on every node.
using torpor::shim::CudnnHandle;
using torpor::shim::CudnnHandleTable;

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (!handle) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  return torpor::shim::WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>(
      [&] { return CudnnHandleTable::Get().Create(*handle); });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return CudnnHandleTable::Get().Remove(handle) ? CUDNN_STATUS_SUCCESS
                                                : CUDNN_STATUS_NOT_INITIALIZED;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  CudnnHandle* const found = CudnnHandleTable::Get().Find(handle);
  if (!found) return CUDNN_STATUS_NOT_INITIALIZED;
  std::uint64_t stream = 0;
  if (!torpor::shim::ResolveStream(*found->core, streamId, stream)) return CUDNN_STATUS_BAD_PARAM;
  found->program_stream = streamId;
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  const CudnnHandle* const found = CudnnHandleTable::Get().Find(handle);
  if (!found) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!streamId) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *streamId = found->program_stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUDNN_MAJOR;
      return CUDNN_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUDNN_MINOR;
      return CUDNN_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUDNN_PATCHLEVEL;
      return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_BAD_PARAM;
}

// A detailed status has the text of its category.
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(int{status})) {
    case 0:
      return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_UNKNOWN";
    case 1000:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
      return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}
