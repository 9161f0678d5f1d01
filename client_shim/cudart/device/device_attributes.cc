#include "client_shim/cudart/device/device_attributes.h"

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// The lists below hold only attributes that Torpor decides; all others are the GPU's.
int AttributeOf(const wire::DeviceDescription& device, cudaDeviceAttr attribute) {
  auto index = static_cast<std::size_t>(attribute);
  switch (attribute) {
    // The client implements pools; managed memory is pinned memory, reachable by both sides at any
    // time.
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrHostRegisterSupported:
      return 1;
    // Executors are other processes: they lack memory allocated outside of CUDA, and registered
    // memory has another address there.
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    // Not implemented by Torpor.
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
    case cudaDevAttrGPUDirectRDMAWritesOrdering:
    case cudaDevAttrSparseCudaArraySupported:
    case cudaDevAttrDeferredMappingCudaArraySupported:
    case cudaDevAttrTimelineSemaphoreInteropSupported:
      return 0;
    // Executors wait for another process's event by a word in shared memory.
    case cudaDevAttrIpcEventSupport:
      index = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS;
      break;
    default:
      break;
  }
  return index < device.attributes.size() ? device.attributes[index] : 0;
}

}  // namespace torpor::shim
