// How fast copies from the host go, by size and by the kind of host memory, and whether one copy
// may read from two registrations.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/probe/gpu.h"
#include "tools/probe/items.h"
#include "tools/probe/memory_file.h"

namespace torpor::probe {
namespace {

constexpr std::size_t kCopySizes[] = {64 << 10, kMiB, 2 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB};
constexpr std::size_t kLargest = 256 * kMiB;
constexpr std::size_t kMaxPerSize = 512 * kMiB;
constexpr int kMaxCopies = 20;

class Uploads {
 public:
  explicit Uploads(Gpu& gpu) : gpu_(gpu), stream_(gpu.NewStream()) {
    Need(gpu.report(), cuMemAlloc(&device_, kLargest), "cuMemAlloc");
  }

  // GB/s of single copies, each waited for: the median and the best.
  void Measure(const std::string& kind, const void* host) {
    for (const std::size_t size : kCopySizes) {
      const auto copies = std::clamp<std::size_t>(kMaxPerSize / size, 2, kMaxCopies);
      std::vector<double> rates;
      for (std::size_t i = 0; i < copies; ++i) {
        const Stopwatch watch;
        Need(gpu_.report(), Copy(host, size), "cuMemcpyHtoDAsync");
        rates.push_back(static_cast<double>(size) / watch.us() / 1e3);
      }
      std::sort(rates.begin(), rates.end());
      gpu_.report().Numbers(kind + ", " + Name(size), "GB/s",
                            {rates[rates.size() / 2], rates.back()});
    }
  }

  CUresult Copy(const void* host, std::size_t size) {
    const CUresult result = cuMemcpyHtoDAsync(device_, host, size, stream_);
    return result == CUDA_SUCCESS ? cuStreamSynchronize(stream_) : result;
  }

 private:
  static std::string Name(std::size_t size) {
    return size < kMiB ? std::to_string(size >> 10) + "KiB" : std::to_string(size / kMiB) + "MiB";
  }

  Gpu& gpu_;
  const CUstream stream_;
  CUdeviceptr device_ = 0;
};

void CopyOverTwoRegistrations(Report& report, Uploads& uploads, MemoryFile& file) {
  char* const begin = static_cast<char*>(file.begin());
  const std::size_t half = file.size() / 2;
  Need(report, cuMemHostRegister(begin, half, 0), "cuMemHostRegister");
  report.Texts("copy partly registered", {NameOf(uploads.Copy(begin + half - kMiB, 2 * kMiB))});
  Need(report, cuMemHostRegister(begin + half, half, 0), "cuMemHostRegister");
  report.Texts("copy over two registrations",
               {NameOf(uploads.Copy(begin + half - kMiB, 2 * kMiB))});
  cuMemHostUnregister(begin);
  cuMemHostUnregister(begin + half);
}

}  // namespace

void ProbeUploads(Report& report) {
  Gpu gpu(report);
  Uploads uploads(gpu);
  void* allocated = nullptr;
  Need(report, cuMemHostAlloc(&allocated, kLargest, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
  uploads.Measure("allocated by the driver", allocated);
  cuMemFreeHost(allocated);
  MemoryFile file(kLargest, Pages::kSmall);
  file.Touch();
  uploads.Measure("pageable memory file", file.begin());
  Need(report, cuMemHostRegister(file.begin(), kLargest, CU_MEMHOSTREGISTER_PORTABLE),
       "cuMemHostRegister");
  uploads.Measure("registered memory file", file.begin());
  Need(report, cuMemHostUnregister(file.begin()), "cuMemHostUnregister");
  CopyOverTwoRegistrations(report, uploads, file);
}

}  // namespace torpor::probe
