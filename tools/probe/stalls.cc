// Whether calls of a second thread stall launches, while a kernel of another stream runs.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"
#include "tools/probe/memory_file.h"

namespace torpor::probe {
namespace {

// Launches go on for at least so long, and at most while the other call runs.
constexpr double kLeastMs = 20;
constexpr double kMostMs = 400;
// The kernel ends by itself, since some calls block all launches until it has ended.
constexpr double kKernelMs = 600;
constexpr std::size_t kFileBytes = 256 * kMiB;

// Launches while the other thread's call runs; gives the longest launch in us.
double LaunchBeside(Gpu& gpu, CUfunction nothing, CUstream stream,
                    const std::atomic<bool>& is_done) {
  double longest = 0;
  const Stopwatch total;
  while (total.ms() < kLeastMs || (!is_done && total.ms() < kMostMs)) {
    const Stopwatch watch;
    Need(gpu.report(), gpu.Launch(nothing, stream), "cuLaunchKernel");
    longest = std::max(longest, watch.us());
    Need(gpu.report(), cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  return longest;
}

// Runs `call` in another thread beside a kernel. The longest launch meanwhile; the call's time;
// whether the call ended only after the kernel; and whether a launch did.
void CallBeside(Gpu& gpu, const std::string& name, const std::function<CUresult()>& call) {
  const CUfunction nothing = gpu.kernel("Nothing");
  const CUstream stream = gpu.NewStream();
  Need(gpu.report(), gpu.Launch(nothing, stream), "cuLaunchKernel");
  Need(gpu.report(), cuStreamSynchronize(stream), "cuStreamSynchronize");
  BusyGpu busy(gpu, kKernelMs);
  std::atomic<bool> is_done = false;
  CUresult result = CUDA_SUCCESS;
  double ms = 0;
  std::thread other([&] {
    cuCtxSetCurrent(gpu.context());
    const Stopwatch watch;
    result = call();
    ms = watch.ms();
    is_done = true;
  });
  const double longest = LaunchBeside(gpu, nothing, stream, is_done);
  busy.End();
  other.join();
  cuStreamDestroy(stream);
  if (result != CUDA_SUCCESS) return gpu.report().Failed(name, NameOf(result));
  gpu.report().Numbers(name + "/longest launch", "us", {longest});
  gpu.report().Numbers(name + "/call", "ms", {ms});
  const auto waited = [](double spent_ms) { return spent_ms >= kMostMs ? "yes" : "no"; };
  gpu.report().Texts(name + "/waits for kernels", {waited(ms)});
  gpu.report().Texts(name + "/launches wait for kernels", {waited(longest / 1e3)});
}

// cuBLAS says 0 for success as the driver does.
std::function<CUresult()> CublasCreate(Report& report) {
  void* const library = dlopen("libcublas.so.13", RTLD_NOW | RTLD_GLOBAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, "cublasCreate_v2");
  if (found == nullptr) {
    report.Failed("cublasCreate", dlerror());
    return nullptr;
  }
  return [create = reinterpret_cast<int (*)(void**)>(found)] {
    void* handle = nullptr;
    return create(&handle) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  };
}

}  // namespace

void ProbeStalls(Report& report) {
  Gpu gpu(report);
  MemoryFile file(kFileBytes, Pages::kSmall);
  file.Touch();
  CUmodule module = nullptr;
  CUdeviceptr memory = 0;
  void* pinned = nullptr;
  CallBeside(gpu, "nothing", [] { return CUDA_SUCCESS; });
  CallBeside(gpu, "cuModuleLoadData", [&] {
    module = gpu.LoadKernels();
    return CUDA_SUCCESS;
  });
  CallBeside(gpu, "cuModuleUnload", [&] { return cuModuleUnload(module); });
  CallBeside(gpu, "cuMemHostRegister, 256MiB",
             [&] { return cuMemHostRegister(file.begin(), kFileBytes, 0); });
  CallBeside(gpu, "cuMemHostUnregister, 256MiB", [&] { return cuMemHostUnregister(file.begin()); });
  CallBeside(gpu, "cuMemHostAlloc, 64MiB", [&] { return cuMemHostAlloc(&pinned, 64 * kMiB, 0); });
  CallBeside(gpu, "cuMemFreeHost, 64MiB", [&] { return cuMemFreeHost(pinned); });
  CallBeside(gpu, "cuMemAlloc, 64MiB", [&] { return cuMemAlloc(&memory, 64 * kMiB); });
  CallBeside(gpu, "cuMemFree, 64MiB", [&] { return cuMemFree(memory); });
  CallBeside(gpu, "cuCtxSetLimit, stack",
             [] { return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4 << 10); });
  if (const auto create = CublasCreate(report)) CallBeside(gpu, "cublasCreate", create);
}

}  // namespace torpor::probe
