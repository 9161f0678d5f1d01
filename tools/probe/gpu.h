#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tools/probe/report.h"

namespace torpor::probe {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;

// The driver's name of an answer, such as CUDA_ERROR_OUT_OF_MEMORY.
std::string NameOf(CUresult result);

// For calls without which an item has nothing to say: reports the failure and ends the process.
// An item has a process of its own.
void Need(Report& report, CUresult result, const char* what);

// The first GPU with its primary context, current in the thread that makes the object, and the
// probe's kernels.
class Gpu {
 public:
  explicit Gpu(Report& report);

  Report& report() const { return report_; }
  CUdevice device() const { return device_; }
  CUcontext context() const { return context_; }
  // The module is loaded with the first kernel.
  CUfunction kernel(const char* name);
  CUmodule LoadKernels() const;
  CUfunction Find(CUmodule module, const char* name) const;
  CUstream NewStream() const;
  // Bytes of the GPU that are free.
  std::size_t free_bytes() const;
  CUresult Launch(CUfunction function, CUstream stream, std::vector<void*> parameters = {}) const;

 private:
  Report& report_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

// Keeps the GPU busy with a kernel of one thread from construction to destruction, or for
// `patience_ms` if that is shorter: a call that blocks the whole process until the kernel ends must
// not block for ever.
class BusyGpu {
 public:
  explicit BusyGpu(Gpu& gpu, double patience_ms = 20e3);
  ~BusyGpu() { End(); }
  BusyGpu(const BusyGpu&) = delete;
  BusyGpu& operator=(const BusyGpu&) = delete;

  // Lets the kernel end, and waits for that.
  void End();

 private:
  const CUstream stream_;
  unsigned* flag_ = nullptr;
};

}  // namespace torpor::probe
