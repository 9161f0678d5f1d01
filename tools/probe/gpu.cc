#include "tools/probe/gpu.h"

#include <unistd.h>

namespace torpor::probe {

extern const char kKernelsFatbin[];

std::string NameOf(CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) == CUDA_SUCCESS) return name;
  return "error " + std::to_string(static_cast<int>(result));
}

void Need(Report& report, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  report.Failed(what, NameOf(result));
  _exit(EXIT_FAILURE);
}

Gpu::Gpu(Report& report) : report_(report) {
  Need(report, cuInit(0), "cuInit");
  Need(report, cuDeviceGet(&device_, 0), "cuDeviceGet");
  Need(report, cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  Need(report, cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

CUmodule Gpu::LoadKernels() const {
  CUmodule module = nullptr;
  Need(report_, cuModuleLoadData(&module, kKernelsFatbin), "cuModuleLoadData");
  return module;
}

CUfunction Gpu::Find(CUmodule module, const char* name) const {
  CUfunction function = nullptr;
  Need(report_, cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
  return function;
}

CUfunction Gpu::kernel(const char* name) {
  if (module_ == nullptr) module_ = LoadKernels();
  return Find(module_, name);
}

CUstream Gpu::NewStream() const {
  CUstream stream = nullptr;
  Need(report_, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

std::size_t Gpu::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  Need(report_, cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

CUresult Gpu::Launch(CUfunction function, CUstream stream, std::vector<void*> parameters) const {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream,
                        parameters.empty() ? nullptr : parameters.data(), nullptr);
}

BusyGpu::BusyGpu(Gpu& gpu, double patience_ms) : stream_(gpu.NewStream()) {
  void* flag = nullptr;
  Need(gpu.report(), cuMemHostAlloc(&flag, sizeof(*flag_), CU_MEMHOSTALLOC_DEVICEMAP),
       "cuMemHostAlloc");
  flag_ = static_cast<unsigned*>(flag);
  *flag_ = 0;
  auto patience_ns = static_cast<unsigned long long>(patience_ms * 1e6);
  const CUresult result = gpu.Launch(gpu.kernel("Wait"), stream_, {&flag, &patience_ns});
  Need(gpu.report(), result, "cuLaunchKernel");
}

void BusyGpu::End() {
  if (flag_ == nullptr) return;
  *static_cast<volatile unsigned*>(flag_) = 1;
  cuStreamSynchronize(stream_);
  cuStreamDestroy(stream_);
  cuMemFreeHost(flag_);
  flag_ = nullptr;
}

}  // namespace torpor::probe
