#include "client_shim/cudart/device/device_properties.h"

#include <algorithm>
#include <cstring>

#include "client_shim/cudart/device/device_attributes.h"

namespace torpor::shim {
namespace {

template <typename Field>
void Set(const wire::DeviceDescription& device, cudaDeviceAttr attribute, Field& field) {
  field = static_cast<Field>(AttributeOf(device, attribute));
}

}  // namespace

// As long as the structure: a line for each field, in order.
cudaDeviceProp DeviceProperties(const wire::DeviceDescription& device) {
  cudaDeviceProp p{};
  const std::size_t length = std::min(device.name.size(), sizeof p.name - 1);
  std::memcpy(p.name, device.name.data(), length);
  std::memcpy(p.uuid.bytes, device.uuid.data(), device.uuid.size());
  p.totalGlobalMem = device.total_bytes;
  Set(device, cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock);
  Set(device, cudaDevAttrWarpSize, p.warpSize);
  Set(device, cudaDevAttrMaxPitch, p.memPitch);
  Set(device, cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock);
  Set(device, cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]);
  Set(device, cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]);
  Set(device, cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]);
  Set(device, cudaDevAttrMaxGridDimX, p.maxGridSize[0]);
  Set(device, cudaDevAttrMaxGridDimY, p.maxGridSize[1]);
  Set(device, cudaDevAttrMaxGridDimZ, p.maxGridSize[2]);
  Set(device, cudaDevAttrTotalConstantMemory, p.totalConstMem);
  Set(device, cudaDevAttrComputeCapabilityMajor, p.major);
  Set(device, cudaDevAttrComputeCapabilityMinor, p.minor);
  Set(device, cudaDevAttrTextureAlignment, p.textureAlignment);
  Set(device, cudaDevAttrTexturePitchAlignment, p.texturePitchAlignment);
  Set(device, cudaDevAttrMultiProcessorCount, p.multiProcessorCount);
  Set(device, cudaDevAttrIntegrated, p.integrated);
  Set(device, cudaDevAttrCanMapHostMemory, p.canMapHostMemory);
  Set(device, cudaDevAttrMaxTexture1DWidth, p.maxTexture1D);
  Set(device, cudaDevAttrMaxTexture1DMipmappedWidth, p.maxTexture1DMipmap);
  Set(device, cudaDevAttrMaxTexture2DWidth, p.maxTexture2D[0]);
  Set(device, cudaDevAttrMaxTexture2DHeight, p.maxTexture2D[1]);
  Set(device, cudaDevAttrMaxTexture2DMipmappedWidth, p.maxTexture2DMipmap[0]);
  Set(device, cudaDevAttrMaxTexture2DMipmappedHeight, p.maxTexture2DMipmap[1]);
  Set(device, cudaDevAttrMaxTexture2DLinearWidth, p.maxTexture2DLinear[0]);
  Set(device, cudaDevAttrMaxTexture2DLinearHeight, p.maxTexture2DLinear[1]);
  Set(device, cudaDevAttrMaxTexture2DLinearPitch, p.maxTexture2DLinear[2]);
  Set(device, cudaDevAttrMaxTexture2DGatherWidth, p.maxTexture2DGather[0]);
  Set(device, cudaDevAttrMaxTexture2DGatherHeight, p.maxTexture2DGather[1]);
  Set(device, cudaDevAttrMaxTexture3DWidth, p.maxTexture3D[0]);
  Set(device, cudaDevAttrMaxTexture3DHeight, p.maxTexture3D[1]);
  Set(device, cudaDevAttrMaxTexture3DDepth, p.maxTexture3D[2]);
  Set(device, cudaDevAttrMaxTexture3DWidthAlt, p.maxTexture3DAlt[0]);
  Set(device, cudaDevAttrMaxTexture3DHeightAlt, p.maxTexture3DAlt[1]);
  Set(device, cudaDevAttrMaxTexture3DDepthAlt, p.maxTexture3DAlt[2]);
  Set(device, cudaDevAttrMaxTextureCubemapWidth, p.maxTextureCubemap);
  Set(device, cudaDevAttrMaxTexture1DLayeredWidth, p.maxTexture1DLayered[0]);
  Set(device, cudaDevAttrMaxTexture1DLayeredLayers, p.maxTexture1DLayered[1]);
  Set(device, cudaDevAttrMaxTexture2DLayeredWidth, p.maxTexture2DLayered[0]);
  Set(device, cudaDevAttrMaxTexture2DLayeredHeight, p.maxTexture2DLayered[1]);
  Set(device, cudaDevAttrMaxTexture2DLayeredLayers, p.maxTexture2DLayered[2]);
  Set(device, cudaDevAttrMaxTextureCubemapLayeredWidth, p.maxTextureCubemapLayered[0]);
  Set(device, cudaDevAttrMaxTextureCubemapLayeredLayers, p.maxTextureCubemapLayered[1]);
  Set(device, cudaDevAttrMaxSurface1DWidth, p.maxSurface1D);
  Set(device, cudaDevAttrMaxSurface2DWidth, p.maxSurface2D[0]);
  Set(device, cudaDevAttrMaxSurface2DHeight, p.maxSurface2D[1]);
  Set(device, cudaDevAttrMaxSurface3DWidth, p.maxSurface3D[0]);
  Set(device, cudaDevAttrMaxSurface3DHeight, p.maxSurface3D[1]);
  Set(device, cudaDevAttrMaxSurface3DDepth, p.maxSurface3D[2]);
  Set(device, cudaDevAttrMaxSurface1DLayeredWidth, p.maxSurface1DLayered[0]);
  Set(device, cudaDevAttrMaxSurface1DLayeredLayers, p.maxSurface1DLayered[1]);
  Set(device, cudaDevAttrMaxSurface2DLayeredWidth, p.maxSurface2DLayered[0]);
  Set(device, cudaDevAttrMaxSurface2DLayeredHeight, p.maxSurface2DLayered[1]);
  Set(device, cudaDevAttrMaxSurface2DLayeredLayers, p.maxSurface2DLayered[2]);
  Set(device, cudaDevAttrMaxSurfaceCubemapWidth, p.maxSurfaceCubemap);
  Set(device, cudaDevAttrMaxSurfaceCubemapLayeredWidth, p.maxSurfaceCubemapLayered[0]);
  Set(device, cudaDevAttrMaxSurfaceCubemapLayeredLayers, p.maxSurfaceCubemapLayered[1]);
  Set(device, cudaDevAttrSurfaceAlignment, p.surfaceAlignment);
  Set(device, cudaDevAttrConcurrentKernels, p.concurrentKernels);
  Set(device, cudaDevAttrEccEnabled, p.ECCEnabled);
  Set(device, cudaDevAttrPciBusId, p.pciBusID);
  Set(device, cudaDevAttrPciDeviceId, p.pciDeviceID);
  Set(device, cudaDevAttrPciDomainId, p.pciDomainID);
  Set(device, cudaDevAttrTccDriver, p.tccDriver);
  Set(device, cudaDevAttrAsyncEngineCount, p.asyncEngineCount);
  Set(device, cudaDevAttrUnifiedAddressing, p.unifiedAddressing);
  Set(device, cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth);
  Set(device, cudaDevAttrL2CacheSize, p.l2CacheSize);
  Set(device, cudaDevAttrMaxPersistingL2CacheSize, p.persistingL2CacheMaxSize);
  Set(device, cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor);
  Set(device, cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported);
  Set(device, cudaDevAttrGlobalL1CacheSupported, p.globalL1CacheSupported);
  Set(device, cudaDevAttrLocalL1CacheSupported, p.localL1CacheSupported);
  Set(device, cudaDevAttrMaxSharedMemoryPerBlock, p.sharedMemPerBlock);
  Set(device, cudaDevAttrMaxSharedMemoryPerMultiprocessor, p.sharedMemPerMultiprocessor);
  Set(device, cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor);
  Set(device, cudaDevAttrManagedMemory, p.managedMemory);
  Set(device, cudaDevAttrIsMultiGpuBoard, p.isMultiGpuBoard);
  Set(device, cudaDevAttrMultiGpuBoardGroupID, p.multiGpuBoardGroupID);
  Set(device, cudaDevAttrHostNativeAtomicSupported, p.hostNativeAtomicSupported);
  Set(device, cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess);
  Set(device, cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess);
  Set(device, cudaDevAttrComputePreemptionSupported, p.computePreemptionSupported);
  Set(device, cudaDevAttrCanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem);
  Set(device, cudaDevAttrCooperativeLaunch, p.cooperativeLaunch);
  Set(device, cudaDevAttrMaxSharedMemoryPerBlockOptin, p.sharedMemPerBlockOptin);
  Set(device, cudaDevAttrPageableMemoryAccessUsesHostPageTables,
      p.pageableMemoryAccessUsesHostPageTables);
  Set(device, cudaDevAttrDirectManagedMemAccessFromHost, p.directManagedMemAccessFromHost);
  Set(device, cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor);
  Set(device, cudaDevAttrMaxAccessPolicyWindowSize, p.accessPolicyMaxWindowSize);
  Set(device, cudaDevAttrReservedSharedMemoryPerBlock, p.reservedSharedMemPerBlock);
  Set(device, cudaDevAttrHostRegisterSupported, p.hostRegisterSupported);
  Set(device, cudaDevAttrSparseCudaArraySupported, p.sparseCudaArraySupported);
  Set(device, cudaDevAttrHostRegisterReadOnlySupported, p.hostRegisterReadOnlySupported);
  Set(device, cudaDevAttrTimelineSemaphoreInteropSupported, p.timelineSemaphoreInteropSupported);
  Set(device, cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported);
  Set(device, cudaDevAttrGPUDirectRDMASupported, p.gpuDirectRDMASupported);
  Set(device, cudaDevAttrGPUDirectRDMAFlushWritesOptions, p.gpuDirectRDMAFlushWritesOptions);
  Set(device, cudaDevAttrGPUDirectRDMAWritesOrdering, p.gpuDirectRDMAWritesOrdering);
  Set(device, cudaDevAttrMemoryPoolSupportedHandleTypes, p.memoryPoolSupportedHandleTypes);
  Set(device, cudaDevAttrDeferredMappingCudaArraySupported, p.deferredMappingCudaArraySupported);
  Set(device, cudaDevAttrIpcEventSupport, p.ipcEventSupported);
  Set(device, cudaDevAttrClusterLaunch, p.clusterLaunch);
  Set(device, cudaDevAttrNumaConfig, p.deviceNumaConfig);
  Set(device, cudaDevAttrNumaId, p.deviceNumaId);
  Set(device, cudaDevAttrMpsEnabled, p.mpsEnabled);
  Set(device, cudaDevAttrHostNumaId, p.hostNumaId);
  Set(device, cudaDevAttrGpuPciDeviceId, p.gpuPciDeviceID);
  Set(device, cudaDevAttrGpuPciSubsystemId, p.gpuPciSubsystemID);
  Set(device, cudaDevAttrHostNumaMultinodeIpcSupported, p.hostNumaMultinodeIpcSupported);
  return p;
}

}  // namespace torpor::shim
