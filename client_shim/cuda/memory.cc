#include "client_shim/cuda/memory.h"

#include <cstdint>
#include <cstring>

#include "client_shim/cuda/contexts.h"
#include "client_shim/cuda/entry.h"

namespace torpor::shim {
namespace {

// The source of the attributes.
struct Pointer {
  CUdeviceptr address = 0;
  cudaPointerAttributes runtime{};
  ClientCore::Allocation allocation;

  bool is_known() const { return runtime.type != cudaMemoryTypeUnregistered; }
};

CUresult Look(CUdeviceptr address, Pointer& pointer) {
  pointer.address = address;
  TORPOR_CU_TRY(Runtime().cudaPointerGetAttributes(&pointer.runtime, At(address)));
  torpor_client_core()->FindAllocation(address, pointer.allocation);
  return CUDA_SUCCESS;
}

// Writes the value to the program's memory of any alignment.
template <typename T>
CUresult Write(void* data, const T& value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult WriteAttribute(const Pointer& pointer, CUpointer_attribute attribute, void* data) {
  const bool is_known = pointer.is_known();
  const bool is_host = pointer.runtime.type == cudaMemoryTypeHost;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return Write(data, reinterpret_cast<std::uintptr_t>(
                             is_known ? ContextOnDevice(pointer.runtime.device) : nullptr));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Write(data,
                   !is_known ? 0u : unsigned{is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE});
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Write(data, pointer.runtime.devicePointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return Write(data, is_known ? pointer.runtime.hostPointer : nullptr);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Write(data, pointer.runtime.type == cudaMemoryTypeManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Write(data, is_known ? pointer.runtime.device : -2);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:  // no two live allocations begin at the same address
      return Write(data, static_cast<unsigned long long>(pointer.allocation.begin));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Write(data, static_cast<CUdeviceptr>(pointer.allocation.begin));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Write(data, static_cast<std::size_t>(pointer.allocation.bytes));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Write(data, is_known);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Write(data, is_known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                  : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: {
      cudaIpcMemHandle_t handle;
      const bool is_device = pointer.runtime.type == cudaMemoryTypeDevice;
      return Write(data, is_device && Runtime().cudaIpcGetMemHandle(&handle, At(pointer.address)) ==
                                          cudaSuccess);
    }
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Write(data, false);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:  // a null pointer
      return Write(data, std::uint64_t{0});
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

CUresult GetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  ClientCore::Allocation allocation;
  if (!torpor_client_core()->FindAllocation(address, allocation)) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = allocation.begin;
  if (bytes) *bytes = allocation.bytes;
  return CUDA_SUCCESS;
}

CUresult GetPointerAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  Pointer pointer;
  TORPOR_CU_TRY(Look(address, pointer));
  return pointer.is_known() ? WriteAttribute(pointer, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult GetPointerAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                              CUdeviceptr address) {
  if (!attributes || !data || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Pointer pointer;
  TORPOR_CU_TRY(Look(address, pointer));
  for (unsigned i = 0; i < count; ++i)
    TORPOR_CU_TRY(WriteAttribute(pointer, attributes[i], data[i]));
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
