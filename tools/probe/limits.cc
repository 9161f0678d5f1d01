// Which of a context's limits can be set before and after kernels have used them, and what they
// take.
#include <string>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {
namespace {

struct Limit {
  CUlimit limit;
  const char* name;
  std::size_t before;
  std::size_t after;
};
constexpr Limit kLimits[] = {
    {CU_LIMIT_PRINTF_FIFO_SIZE, "printf buffer", 2 * kMiB, 4 * kMiB},
    {CU_LIMIT_MALLOC_HEAP_SIZE, "malloc heap", 16 * kMiB, 32 * kMiB},
    {CU_LIMIT_STACK_SIZE, "stack", 2 << 10, 16 << 10},
};

// Sets a limit; tells answer, time and GPU memory.
void Set(Gpu& gpu, const Limit& limit, std::size_t value, const std::string& when) {
  const std::string name = std::string(limit.name) + ", " + when;
  const std::size_t free = gpu.free_bytes();
  const Stopwatch watch;
  const CUresult result = cuCtxSetLimit(limit.limit, value);
  const double us = watch.us();
  gpu.report().Texts(name, {NameOf(result)});
  gpu.report().Numbers(name + "/time", "us", {us});
  const auto taken = static_cast<double>(free) - static_cast<double>(gpu.free_bytes());
  gpu.report().Numbers(name + "/memory", "MiB", {taken / static_cast<double>(kMiB)});
}

void UseThem(Gpu& gpu) {
  CUdeviceptr result = 0;
  Need(gpu.report(), cuMemAlloc(&result, sizeof(void*)), "cuMemAlloc");
  Need(gpu.report(), gpu.Launch(gpu.kernel("Print"), nullptr), "cuLaunchKernel");
  Need(gpu.report(), gpu.Launch(gpu.kernel("Allocate"), nullptr, {&result}), "cuLaunchKernel");
  Need(gpu.report(), cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace

void ProbeLimits(Report& report) {
  Gpu gpu(report);
  for (const Limit& limit : kLimits) {
    std::size_t value = 0;
    Need(report, cuCtxGetLimit(&value, limit.limit), "cuCtxGetLimit");
    report.Numbers(std::string(limit.name) + ", by default", "KiB",
                   {static_cast<double>(value) / 1024});
    Set(gpu, limit, limit.before, "before use");
  }
  UseThem(gpu);
  for (const Limit& limit : kLimits) {
    Set(gpu, limit, limit.before, "same after use");
    Set(gpu, limit, limit.after, "larger after use");
  }
  const BusyGpu busy(gpu);
  const Stopwatch watch;
  std::size_t value = 0;
  Need(report, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), "cuCtxGetLimit");
  report.Numbers("cuCtxGetLimit under a kernel", "us", {watch.us()});
}

}  // namespace torpor::probe
