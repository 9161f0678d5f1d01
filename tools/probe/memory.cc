// How much GPU memory a context, code, libraries and stacks take.
#include <dlfcn.h>

#include <string>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {
namespace {

// Tells by how much the free memory has shrunk since the last look.
class MemoryWatch {
 public:
  explicit MemoryWatch(Gpu& gpu) : gpu_(gpu), free_(gpu.free_bytes()) {}

  void Tell(const std::string& name) {
    const std::size_t now = gpu_.free_bytes();
    const auto taken = static_cast<double>(free_) - static_cast<double>(now);
    gpu_.report().Numbers(name, "MiB", {taken / static_cast<double>(kMiB)});
    free_ = now;
  }

 private:
  Gpu& gpu_;
  std::size_t free_;
};

// Makes two handles of a library; tells their time and memory.
void CreateHandles(Gpu& gpu, MemoryWatch& memory, const char* library, const char* function) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (opened == nullptr) return gpu.report().Failed(library, dlerror());
  memory.Tell(std::string(library) + ", opened");
  const auto create = reinterpret_cast<int (*)(void**)>(dlsym(opened, function));
  if (create == nullptr) return gpu.report().Failed(library, dlerror());
  for (const char* const which : {"first handle", "second handle"}) {
    const std::string name = std::string(library) + ", " + which;
    void* handle = nullptr;
    const Stopwatch watch;
    const int status = create(&handle);
    if (status != 0) return gpu.report().Failed(name, "status " + std::to_string(status));
    gpu.report().Numbers(name + "/time", "ms", {watch.ms()});
    memory.Tell(name);
  }
}

void UseStack(Gpu& gpu) {
  CUdeviceptr values = 0;
  int count = 0;
  Need(gpu.report(), cuMemAlloc(&values, 4096), "cuMemAlloc");
  Need(gpu.report(), cuMemsetD8(values, 0, 4096), "cuMemsetD8");
  Need(gpu.report(), gpu.Launch(gpu.kernel("UseStack"), nullptr, {&values, &count}),
       "cuLaunchKernel");
  Need(gpu.report(), cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace

void ProbeMemory(Report& report) {
  const Stopwatch watch;
  Gpu gpu(report);
  report.Numbers("context/time", "ms", {watch.ms()});
  std::size_t total = 0;
  Need(report, cuDeviceTotalMem(&total, gpu.device()), "cuDeviceTotalMem");
  report.Numbers("total", "MiB", {static_cast<double>(total) / static_cast<double>(kMiB)});
  // Whatever other processes have counts as well.
  report.Numbers("context", "MiB",
                 {static_cast<double>(total - gpu.free_bytes()) / static_cast<double>(kMiB)});
  MemoryWatch memory(gpu);
  const CUstream stream = gpu.NewStream();
  memory.Tell("a stream");
  Need(report, gpu.Launch(gpu.kernel("Nothing"), stream), "cuLaunchKernel");
  Need(report, cuCtxSynchronize(), "cuCtxSynchronize");
  memory.Tell("a module with small kernels");
  UseStack(gpu);
  memory.Tell("a kernel with 2 KiB of stack");
  CreateHandles(gpu, memory, "libcublas.so.13", "cublasCreate_v2");
  CreateHandles(gpu, memory, "libcublasLt.so.13", "cublasLtCreate");
  CreateHandles(gpu, memory, "libcudnn.so.9", "cudnnCreate");
}

}  // namespace torpor::probe
