#include "client_shim/cudart/device_attributes.h"

#include <cstddef>

namespace torpor::shim {

int AttributeOf(const wire::DeviceDescription& device, cudaDeviceAttr attribute) {
  switch (attribute) {
    // Pools are the client's; managed memory is pinned memory that both sides reach at any time.
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrHostRegisterSupported:
      return 1;
    // Executors are other processes: what the program has not allocated through CUDA is not theirs,
    // and registered memory has another address there.
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrDirectManagedMemAccessFromHost:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    // Not offered.
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrIpcEventSupport:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
    case cudaDevAttrGPUDirectRDMAWritesOrdering:
    case cudaDevAttrSparseCudaArraySupported:
    case cudaDevAttrDeferredMappingCudaArraySupported:
    case cudaDevAttrTimelineSemaphoreInteropSupported:
      return 0;
    default:
      break;
  }
  const auto index = static_cast<std::size_t>(attribute);
  return index < device.attributes.size() ? device.attributes[index] : 0;
}

}  // namespace torpor::shim
