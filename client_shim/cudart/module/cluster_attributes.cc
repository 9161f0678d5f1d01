#include "client_shim/cudart/module/cluster_attributes.h"

#include <cstddef>
#include <cstdint>

namespace torpor::shim {

cudaError_t NoteClusterAttribute(const ClientKernel& kernel, cudaFuncAttribute attribute,
                                 int value) {
  KernelOnDevice& here = kernel.here();
  switch (attribute) {
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      if (value < 0 || value > 1) return cudaErrorInvalidValue;
      here.allows_large_clusters = value != 0;
      return cudaSuccess;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
      if (kernel.entry.cluster[0] != 0) return cudaErrorInvalidValue;
      if (value < 0) return cudaErrorInvalidValue;
      here.required_cluster[static_cast<std::size_t>(
          attribute - cudaFuncAttributeRequiredClusterWidth)] = static_cast<std::uint32_t>(value);
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

}  // namespace torpor::shim
