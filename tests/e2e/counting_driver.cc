// A libcuda.so.1 that is the emulator's, but counts the calls that ask the driver for memory, of a
// GPU or pinned: of all processes together, in the file that counted_allocations.h names.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "tests/e2e/counted_allocations.h"

namespace torpor::e2e {
namespace {

std::uint64_t* MapCounter() {
  const char* const path = std::getenv(kAllocationCountVariable);
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) std::abort();
  void* const counter =
      mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (counter == MAP_FAILED) std::abort();
  return static_cast<std::uint64_t*>(counter);
}

// Counts, and gives the emulator's function: loaded already, under its soname, because this library
// needs it.
template <typename Function>
Function* Counted(Function*, const char* name) {
  static std::uint64_t* const counter = MapCounter();
  std::atomic_ref<std::uint64_t>(*counter).fetch_add(1);
  return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

}  // namespace
}  // namespace torpor::e2e

using torpor::e2e::Counted;

#pragma GCC visibility push(default)
extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return Counted(&cuMemCreate, "cuMemCreate")(handle, bytes, properties, flags);
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  return Counted(&cuMemAlloc, "cuMemAlloc_v2")(address, bytes);
}

CUresult cuMemAllocPitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                         std::size_t height, unsigned element) {
  return Counted(&cuMemAllocPitch, "cuMemAllocPitch_v2")(address, pitch, width, height, element);
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  return Counted(&cuMemAllocManaged, "cuMemAllocManaged")(address, bytes, flags);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  return Counted(&cuMemAllocAsync, "cuMemAllocAsync")(address, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return Counted(&cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync")(address, bytes, pool, stream);
}

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return Counted(&cuMemHostAlloc, "cuMemHostAlloc")(memory, bytes, flags);
}

CUresult cuMemAllocHost(void** memory, std::size_t bytes) {
  return Counted(&cuMemAllocHost, "cuMemAllocHost_v2")(memory, bytes);
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  return Counted(&cuArrayCreate, "cuArrayCreate_v2")(array, shape);
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return Counted(&cuArray3DCreate, "cuArray3DCreate_v2")(array, shape);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned levels) {
  return Counted(&cuMipmappedArrayCreate, "cuMipmappedArrayCreate")(array, shape, levels);
}

}  // extern "C"
#pragma GCC visibility pop
