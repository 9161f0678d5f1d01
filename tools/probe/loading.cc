// When the driver loads a function: with its module, by cuFuncLoad, or at the first launch.
#include <atomic>
#include <string>
#include <thread>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {
namespace {

constexpr double kLaunchPatienceMs = 500;

std::string StateOf(CUfunction function) {
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_MAX;
  const CUresult result = cuFuncIsLoaded(&state, function);
  if (result != CUDA_SUCCESS) return NameOf(result);
  return state == CU_FUNCTION_LOADING_STATE_LOADED ? "loaded" : "not loaded";
}

void Launch(Gpu& gpu, const std::string& name, CUfunction function) {
  const Stopwatch watch;
  Need(gpu.report(), gpu.Launch(function, nullptr), "cuLaunchKernel");
  gpu.report().Numbers(name, "us", {watch.us()});
  Need(gpu.report(), cuCtxSynchronize(), "cuCtxSynchronize");
}

// Whether a first launch waits for a kernel of another stream, or is through before.
void LaunchBesideAKernel(Gpu& gpu, const std::string& name, CUfunction function) {
  const CUstream stream = gpu.NewStream();
  BusyGpu busy(gpu);
  std::atomic<bool> is_done = false;
  double us = 0;
  std::thread other([&] {
    cuCtxSetCurrent(gpu.context());
    const Stopwatch watch;
    gpu.Launch(function, stream);
    us = watch.us();
    is_done = true;
  });
  for (const Stopwatch watch; !is_done && watch.ms() < kLaunchPatienceMs;)
    std::this_thread::yield();
  const bool waited = !is_done;
  busy.End();
  other.join();
  cuStreamSynchronize(stream);
  gpu.report().Texts(name + "/waits for kernels", {waited ? "yes" : "no"});
  if (!waited) gpu.report().Numbers(name, "us", {us});
}

}  // namespace

void ProbeLoading(Report& report) {
  Gpu gpu(report);
  CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
  Need(report, cuModuleGetLoadingMode(&mode), "cuModuleGetLoadingMode");
  report.Texts("mode", {mode == CU_MODULE_LAZY_LOADING ? "lazy" : "eager"});
  BusyGpu(gpu).End();  // so that nothing below is the context's first
  const Stopwatch watch;
  const CUmodule module = gpu.LoadKernels();
  report.Numbers("cuModuleLoadData", "us", {watch.us()});
  const CUfunction first = gpu.Find(module, "Nothing");
  report.Texts("a function that was found", {StateOf(first)});
  Launch(gpu, "first launch", first);
  report.Texts("a function after its first launch", {StateOf(first)});
  Launch(gpu, "second launch", first);

  const CUmodule twin = gpu.LoadKernels();
  const CUfunction loaded = gpu.Find(twin, "Nothing");
  const Stopwatch load_watch;
  report.Texts("cuFuncLoad", {NameOf(cuFuncLoad(loaded))});
  report.Numbers("cuFuncLoad/time", "us", {load_watch.us()});
  report.Texts("a function after cuFuncLoad", {StateOf(loaded)});
  LaunchBesideAKernel(gpu, "first launch after cuFuncLoad, under a kernel", loaded);
  LaunchBesideAKernel(gpu, "first launch, under a kernel", gpu.Find(twin, "NothingElse"));
}

}  // namespace torpor::probe
