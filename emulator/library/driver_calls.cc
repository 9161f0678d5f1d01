#include "emulator/library/driver_calls.h"

#include <dlfcn.h>

#include <cstdio>

namespace torpor::emulator {
namespace {

// Looks a function up; returns false if the library lacks it.
template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Fills in `calls`; returns false if the driver lacks a function.
bool Load(DriverCalls& calls) {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && Find(library, "cuCtxGetCurrent", calls.ctx_get_current) &&
         Find(library, "cuMemAlloc_v2", calls.mem_alloc) &&
         Find(library, "cuMemFree_v2", calls.mem_free) &&
         Find(library, "cuStreamSynchronize", calls.stream_synchronize) &&
         Find(library, "cuPointerGetAttributes", calls.pointer_get_attributes) &&
         Find(library, "cuMemcpy2D_v2", calls.memcpy_2d) &&
         Find(library, "cuMemcpy2DAsync_v2", calls.memcpy_2d_async) &&
         Find(library, "torporEmulatorComputes", calls.computes) &&
         Find(library, "torporEmulatorLaunchWork", calls.launch_work) &&
         Find(library, "torporEmulatorCublasMemory", calls.cublas_memory);
}

}  // namespace

const DriverCalls* DriverCalls::Get() {
  static DriverCalls calls;
  static const bool loaded = [] {
    if (Load(calls)) return true;
    std::fputs("torpor-emulator: a library needs the emulated libcuda.so.1 loaded first\n", stderr);
    return false;
  }();
  return loaded ? &calls : nullptr;
}

}  // namespace torpor::emulator
