#pragma once

#include <cuda.h>

#include <string>

#include "absl/status/statusor.h"

namespace torpor::executor {

// Entry points of the CUDA driver (NVIDIA's or the emulator's) for an executor, resolved at run
// time. Tests fill the table with fake functions. Copyable; the functions are thread-safe.
struct CudaDriver {
  decltype(&::cuInit) Init = nullptr;
  decltype(&::cuDriverGetVersion) DriverGetVersion = nullptr;
  decltype(&::cuGetErrorName) GetErrorName = nullptr;
  decltype(&::cuGetErrorString) GetErrorString = nullptr;
  decltype(&::cuLogsRegisterCallback) LogsRegisterCallback = nullptr;

  decltype(&::cuDeviceGetCount) DeviceGetCount = nullptr;
  decltype(&::cuDeviceGet) DeviceGet = nullptr;
  decltype(&::cuDeviceGetName) DeviceGetName = nullptr;
  decltype(&::cuDeviceGetUuid_v2) DeviceGetUuid = nullptr;
  decltype(&::cuDeviceTotalMem_v2) DeviceTotalMem = nullptr;
  decltype(&::cuDeviceGetAttribute) DeviceGetAttribute = nullptr;
  decltype(&::cuDeviceGetPCIBusId) DeviceGetPciBusId = nullptr;
  decltype(&::cuDeviceCanAccessPeer) DeviceCanAccessPeer = nullptr;
  decltype(&::cuDeviceGetP2PAttribute) DeviceGetP2PAttribute = nullptr;
  decltype(&::cuDevicePrimaryCtxSetFlags_v2) DevicePrimaryCtxSetFlags = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) DevicePrimaryCtxRetain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease_v2) DevicePrimaryCtxRelease = nullptr;
  decltype(&::cuCtxSetCurrent) CtxSetCurrent = nullptr;
  decltype(&::cuCtxGetLimit) CtxGetLimit = nullptr;
  decltype(&::cuCtxSetLimit) CtxSetLimit = nullptr;

  decltype(&::cuMemGetInfo_v2) MemGetInfo = nullptr;
  decltype(&::cuMemGetAllocationGranularity) MemGetAllocationGranularity = nullptr;
  decltype(&::cuMemCreate) MemCreate = nullptr;
  decltype(&::cuMemRelease) MemRelease = nullptr;
  decltype(&::cuMemAddressReserve) MemAddressReserve = nullptr;
  decltype(&::cuMemAddressFree) MemAddressFree = nullptr;
  decltype(&::cuMemMap) MemMap = nullptr;
  decltype(&::cuMemUnmap) MemUnmap = nullptr;
  decltype(&::cuMemSetAccess) MemSetAccess = nullptr;
  decltype(&::cuMemExportToShareableHandle) MemExportToShareableHandle = nullptr;
  decltype(&::cuMemImportFromShareableHandle) MemImportFromShareableHandle = nullptr;
  decltype(&::cuMemHostAlloc) MemHostAlloc = nullptr;
  decltype(&::cuMemFreeHost) MemFreeHost = nullptr;
  decltype(&::cuMemHostRegister_v2) MemHostRegister = nullptr;
  decltype(&::cuMemHostUnregister) MemHostUnregister = nullptr;
  decltype(&::cuMemHostGetDevicePointer_v2) MemHostGetDevicePointer = nullptr;
  decltype(&::cuMemcpyHtoDAsync_v2) MemcpyHtoDAsync = nullptr;
  decltype(&::cuMemcpyDtoHAsync_v2) MemcpyDtoHAsync = nullptr;
  decltype(&::cuMemcpyDtoDAsync_v2) MemcpyDtoDAsync = nullptr;
  decltype(&::cuMemcpy2DAsync_v2) Memcpy2DAsync = nullptr;
  decltype(&::cuMemcpy3DAsync_v2) Memcpy3DAsync = nullptr;
  decltype(&::cuMemsetD8Async) MemsetD8Async = nullptr;
  decltype(&::cuMemsetD16Async) MemsetD16Async = nullptr;
  decltype(&::cuMemsetD32Async) MemsetD32Async = nullptr;
  decltype(&::cuMemsetD2D8Async) MemsetD2D8Async = nullptr;
  decltype(&::cuMemsetD2D16Async) MemsetD2D16Async = nullptr;
  decltype(&::cuMemsetD2D32Async) MemsetD2D32Async = nullptr;

  decltype(&::cuArray3DCreate_v2) Array3DCreate = nullptr;
  decltype(&::cuArrayDestroy) ArrayDestroy = nullptr;
  decltype(&::cuMipmappedArrayCreate) MipmappedArrayCreate = nullptr;
  decltype(&::cuMipmappedArrayGetLevel) MipmappedArrayGetLevel = nullptr;
  decltype(&::cuMipmappedArrayDestroy) MipmappedArrayDestroy = nullptr;
  decltype(&::cuTexObjectCreate) TexObjectCreate = nullptr;
  decltype(&::cuTexObjectDestroy) TexObjectDestroy = nullptr;
  decltype(&::cuSurfObjectCreate) SurfObjectCreate = nullptr;
  decltype(&::cuSurfObjectDestroy) SurfObjectDestroy = nullptr;

  decltype(&::cuStreamCreateWithPriority) StreamCreateWithPriority = nullptr;
  decltype(&::cuStreamDestroy_v2) StreamDestroy = nullptr;
  decltype(&::cuStreamSynchronize) StreamSynchronize = nullptr;
  decltype(&::cuStreamQuery) StreamQuery = nullptr;
  decltype(&::cuStreamWaitEvent) StreamWaitEvent = nullptr;
  decltype(&::cuStreamWriteValue64_v2) StreamWriteValue64 = nullptr;
  decltype(&::cuStreamWaitValue64_v2) StreamWaitValue64 = nullptr;
  decltype(&::cuLaunchHostFunc) LaunchHostFunc = nullptr;
  decltype(&::cuStreamBeginCapture_v2) StreamBeginCapture = nullptr;
  decltype(&::cuStreamEndCapture) StreamEndCapture = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) GraphInstantiate = nullptr;
  decltype(&::cuGraphExecUpdate_v2) GraphExecUpdate = nullptr;
  decltype(&::cuGraphLaunch) GraphLaunch = nullptr;
  decltype(&::cuGraphExecDestroy) GraphExecDestroy = nullptr;
  decltype(&::cuGraphDestroy) GraphDestroy = nullptr;
  decltype(&::cuEventCreate) EventCreate = nullptr;
  decltype(&::cuEventDestroy_v2) EventDestroy = nullptr;
  decltype(&::cuEventRecord) EventRecord = nullptr;
  decltype(&::cuEventQuery) EventQuery = nullptr;
  decltype(&::cuEventSynchronize) EventSynchronize = nullptr;
  decltype(&::cuEventElapsedTime_v2) EventElapsedTime = nullptr;

  decltype(&::cuModuleLoadData) ModuleLoadData = nullptr;
  decltype(&::cuModuleLoadDataEx) ModuleLoadDataEx = nullptr;
  decltype(&::cuLinkCreate_v2) LinkCreate = nullptr;
  decltype(&::cuLinkAddData_v2) LinkAddData = nullptr;
  decltype(&::cuLinkComplete) LinkComplete = nullptr;
  decltype(&::cuLinkDestroy) LinkDestroy = nullptr;
  decltype(&::cuModuleUnload) ModuleUnload = nullptr;
  decltype(&::cuModuleGetFunctionCount) ModuleGetFunctionCount = nullptr;
  decltype(&::cuModuleEnumerateFunctions) ModuleEnumerateFunctions = nullptr;
  decltype(&::cuModuleGetGlobal_v2) ModuleGetGlobal = nullptr;
  decltype(&::cuFuncLoad) FuncLoad = nullptr;
  decltype(&::cuFuncGetName) FuncGetName = nullptr;
  decltype(&::cuFuncGetParamInfo) FuncGetParamInfo = nullptr;
  decltype(&::cuFuncGetAttribute) FuncGetAttribute = nullptr;
  decltype(&::cuFuncSetAttribute) FuncSetAttribute = nullptr;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) OccupancyMaxActiveBlocks =
      nullptr;
  decltype(&::cuOccupancyMaxActiveClusters) OccupancyMaxActiveClusters = nullptr;
  decltype(&::cuOccupancyMaxPotentialClusterSize) OccupancyMaxPotentialClusterSize = nullptr;
  decltype(&::cuLaunchKernel) LaunchKernel = nullptr;
  decltype(&::cuLaunchKernelEx) LaunchKernelEx = nullptr;
};

// Opens libcuda.so.1 in `directory` (empty: the system's search path) for the rest of the process's
// life. NotFound names the missing library or symbol.
absl::StatusOr<CudaDriver> LoadCudaDriver(const std::string& directory);

}  // namespace torpor::executor
