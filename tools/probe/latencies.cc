// How long it takes until the host sees a value that a stream wrote, and what a launch costs.
#include <algorithm>
#include <vector>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"

namespace torpor::probe {
namespace {

constexpr int kSamples = 200;
constexpr int kBurst = 1000;
constexpr double kPatienceMs = 2000;

// Median and 98th of a hundred.
std::vector<double> Quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[samples.size() * 98 / 100]};
}

void SeeWrittenValues(Gpu& gpu, CUstream stream) {
  void* host = nullptr;
  Need(gpu.report(), cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
  CUdeviceptr address = 0;
  Need(gpu.report(), cuMemHostGetDevicePointer(&address, host, 0), "cuMemHostGetDevicePointer");
  const volatile auto* const seen = static_cast<const volatile unsigned*>(host);
  std::vector<double> samples;
  for (unsigned i = 1; i <= kSamples; ++i) {
    const Stopwatch watch;
    Need(gpu.report(), cuStreamWriteValue32(stream, address, i, 0), "cuStreamWriteValue32");
    while (*seen != i && watch.ms() < kPatienceMs) {
    }
    if (*seen != i) return gpu.report().Failed("a written value", "not seen within 2 s");
    samples.push_back(watch.us());
  }
  gpu.report().Numbers("a written value (median, p98)", "us", Quantiles(samples));
}

template <typename Work>
void MeasureRoundTrip(Gpu& gpu, CUstream stream, const char* name, Work&& work) {
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const Stopwatch watch;
    Need(gpu.report(), work(), name);
    Need(gpu.report(), cuStreamSynchronize(stream), "cuStreamSynchronize");
    samples.push_back(watch.us());
  }
  gpu.report().Numbers(name, "us", Quantiles(samples));
}

// The mean time of the calling thread for a piece of work in a burst.
template <typename Work>
void MeasureBurst(Gpu& gpu, CUstream stream, const char* name, Work&& work) {
  const Stopwatch watch;
  for (int i = 0; i < kBurst; ++i) Need(gpu.report(), work(), name);
  gpu.report().Numbers(name, "us", {watch.us() / kBurst});
  Need(gpu.report(), cuStreamSynchronize(stream), "cuStreamSynchronize");
}

}  // namespace

void ProbeLatencies(Report& report) {
  Gpu gpu(report);
  const CUstream stream = gpu.NewStream();
  const CUfunction nothing = gpu.kernel("Nothing");
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  Need(report, cuMemAlloc(&memory, 4096), "cuMemAlloc");
  Need(report, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  Need(report, gpu.Launch(nothing, stream), "cuLaunchKernel");
  Need(report, cuStreamSynchronize(stream), "cuStreamSynchronize");
  SeeWrittenValues(gpu, stream);
  MeasureRoundTrip(gpu, stream, "launch and synchronise (median, p98)",
                   [&] { return gpu.Launch(nothing, stream); });
  MeasureBurst(gpu, stream, "a launch of 1000", [&] { return gpu.Launch(nothing, stream); });
  MeasureBurst(gpu, stream, "an event of 1000", [&] { return cuEventRecord(event, stream); });
  MeasureBurst(gpu, stream, "a fill of 1000",
               [&] { return cuMemsetD8Async(memory, 0, 4096, stream); });
  MeasureBurst(gpu, stream, "a query of 1000", [&] {
    const CUresult result = cuStreamQuery(stream);
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
  });
}

}  // namespace torpor::probe
