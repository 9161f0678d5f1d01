#include "server/executor/cuda_driver.h"

#include "base/status_macros.h"
#include "server/executor/dynamic_library.h"

namespace torpor::executor {

absl::StatusOr<CudaDriver> LoadCudaDriver(const std::string& directory) {
  CudaDriver driver;
  // The versioned names: those that cuda.h's plain names stand for.
  const Symbol symbols[] = {
      {"cuInit", driver.Init},
      {"cuDriverGetVersion", driver.DriverGetVersion},
      {"cuGetErrorName", driver.GetErrorName},
      {"cuGetErrorString", driver.GetErrorString},
      {"cuLogsRegisterCallback", driver.LogsRegisterCallback},
      {"cuDeviceGetCount", driver.DeviceGetCount},
      {"cuDeviceGet", driver.DeviceGet},
      {"cuDeviceGetName", driver.DeviceGetName},
      {"cuDeviceGetUuid_v2", driver.DeviceGetUuid},
      {"cuDeviceTotalMem_v2", driver.DeviceTotalMem},
      {"cuDeviceGetAttribute", driver.DeviceGetAttribute},
      {"cuDeviceGetPCIBusId", driver.DeviceGetPciBusId},
      {"cuDevicePrimaryCtxRetain", driver.DevicePrimaryCtxRetain},
      {"cuDevicePrimaryCtxRelease_v2", driver.DevicePrimaryCtxRelease},
      {"cuCtxSetCurrent", driver.CtxSetCurrent},
      {"cuCtxGetLimit", driver.CtxGetLimit},
      {"cuCtxSetLimit", driver.CtxSetLimit},
      {"cuMemGetAllocationGranularity", driver.MemGetAllocationGranularity},
      {"cuMemCreate", driver.MemCreate},
      {"cuMemRelease", driver.MemRelease},
      {"cuMemAddressReserve", driver.MemAddressReserve},
      {"cuMemAddressFree", driver.MemAddressFree},
      {"cuMemMap", driver.MemMap},
      {"cuMemUnmap", driver.MemUnmap},
      {"cuMemSetAccess", driver.MemSetAccess},
      {"cuMemHostRegister_v2", driver.MemHostRegister},
      {"cuMemHostUnregister", driver.MemHostUnregister},
      {"cuMemHostGetDevicePointer_v2", driver.MemHostGetDevicePointer},
      {"cuMemcpyHtoDAsync_v2", driver.MemcpyHtoDAsync},
      {"cuMemcpyDtoHAsync_v2", driver.MemcpyDtoHAsync},
      {"cuMemcpyDtoDAsync_v2", driver.MemcpyDtoDAsync},
      {"cuMemcpy2DAsync_v2", driver.Memcpy2DAsync},
      {"cuMemsetD8Async", driver.MemsetD8Async},
      {"cuMemsetD16Async", driver.MemsetD16Async},
      {"cuMemsetD32Async", driver.MemsetD32Async},
      {"cuMemsetD2D8Async", driver.MemsetD2D8Async},
      {"cuStreamCreateWithPriority", driver.StreamCreateWithPriority},
      {"cuStreamDestroy_v2", driver.StreamDestroy},
      {"cuStreamSynchronize", driver.StreamSynchronize},
      {"cuStreamQuery", driver.StreamQuery},
      {"cuStreamWaitEvent", driver.StreamWaitEvent},
      {"cuStreamWriteValue64_v2", driver.StreamWriteValue64},
      {"cuLaunchHostFunc", driver.LaunchHostFunc},
      {"cuEventCreate", driver.EventCreate},
      {"cuEventDestroy_v2", driver.EventDestroy},
      {"cuEventRecord", driver.EventRecord},
      {"cuEventSynchronize", driver.EventSynchronize},
      {"cuEventElapsedTime_v2", driver.EventElapsedTime},
      {"cuModuleLoadData", driver.ModuleLoadData},
      {"cuModuleLoadDataEx", driver.ModuleLoadDataEx},
      {"cuLinkCreate_v2", driver.LinkCreate},
      {"cuLinkAddData_v2", driver.LinkAddData},
      {"cuLinkComplete", driver.LinkComplete},
      {"cuLinkDestroy", driver.LinkDestroy},
      {"cuModuleUnload", driver.ModuleUnload},
      {"cuModuleGetFunctionCount", driver.ModuleGetFunctionCount},
      {"cuModuleEnumerateFunctions", driver.ModuleEnumerateFunctions},
      {"cuModuleGetGlobal_v2", driver.ModuleGetGlobal},
      {"cuFuncGetName", driver.FuncGetName},
      {"cuFuncGetParamInfo", driver.FuncGetParamInfo},
      {"cuFuncGetAttribute", driver.FuncGetAttribute},
      {"cuFuncSetAttribute", driver.FuncSetAttribute},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", driver.OccupancyMaxActiveBlocks},
      {"cuLaunchKernel", driver.LaunchKernel},
      {"cuLaunchCooperativeKernel", driver.LaunchCooperativeKernel},
  };
  TORPOR_RETURN_IF_ERROR(LoadSymbols(directory, "libcuda.so.1", symbols));
  return driver;
}

}  // namespace torpor::executor
