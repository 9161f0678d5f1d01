#pragma once

#include <cuda.h>

#include "emulator/driver/api/library_calls.h"

namespace torpor::emulator {

// The driver functions that the emulated libraries call. They come from the libcuda.so.1 that the
// process has loaded already, even RTLD_LOCAL: a program that loads both takes them from one
// folder.
struct DriverCalls {
  decltype(&cuCtxGetCurrent) ctx_get_current = nullptr;
  decltype(&cuMemAlloc) mem_alloc = nullptr;
  decltype(&cuMemFree) mem_free = nullptr;
  decltype(&cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&cuPointerGetAttributes) pointer_get_attributes = nullptr;
  decltype(&cuMemcpy2D) memcpy_2d = nullptr;
  decltype(&cuMemcpy2DAsync) memcpy_2d_async = nullptr;
  decltype(&torporEmulatorComputes) computes = nullptr;
  decltype(&torporEmulatorLaunchWork) launch_work = nullptr;
  decltype(&torporEmulatorCublasMemory) cublas_memory = nullptr;

  // Returns null, after one line on stderr, if no libcuda.so.1 is loaded. Thread-safe; the result
  // lives as long as the process.
  static const DriverCalls* Get();
};

}  // namespace torpor::emulator
