#include "bench/memory/driver_memory.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace torpor::memory {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

}  // namespace

template <typename Function>
void DriverMemory::Load(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library_, name));
  if (function == nullptr) Fail(std::string("libcuda.so.1 has no ") + name);
}

DriverMemory::DriverMemory(const std::string& folder, Bytes capacity) : capacity_(capacity) {
  const std::string file = folder.empty() ? "libcuda.so.1" : folder + "/libcuda.so.1";
  library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) Fail(std::string("cannot open the driver: ") + dlerror());
  decltype(cuInit)* init = nullptr;
  decltype(cuDeviceGet)* get = nullptr;
  decltype(cuDevicePrimaryCtxRetain)* retain = nullptr;
  decltype(cuCtxSetCurrent)* make_current = nullptr;
  Load("cuInit", init);
  Load("cuDeviceGet", get);
  Load("cuDevicePrimaryCtxRetain", retain);
  Load("cuDevicePrimaryCtxRelease_v2", release_);
  Load("cuCtxSetCurrent", make_current);
  Load("cuMemAlloc_v2", allocate_);
  Load("cuMemFree_v2", free_);
  CUdevice device = 0;
  CUcontext context = nullptr;
  Check(init(0), "cuInit");
  Check(get(&device, 0), "cuDeviceGet");
  Check(retain(&context, device), "cuDevicePrimaryCtxRetain");
  Check(make_current(context), "cuCtxSetCurrent");
}

DriverMemory::~DriverMemory() {
  for (const auto& [address, bytes] : blocks_) free_(address);
  release_(0);
}

void DriverMemory::Check(CUresult result, const char* call) const {
  if (result != CUDA_SUCCESS) Fail(std::string(call) + " gives " + std::to_string(result));
}

std::optional<std::uint64_t> DriverMemory::Allocate(Bytes bytes) {
  if (bytes > capacity_ - allocated_) return std::nullopt;
  CUdeviceptr address = 0;
  const CUresult result = allocate_(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return std::nullopt;
  Check(result, "cuMemAlloc");
  blocks_[address] = bytes;
  allocated_ += bytes;
  return address;
}

void DriverMemory::Free(std::uint64_t address) {
  const auto block = blocks_.find(address);
  allocated_ -= block->second;
  blocks_.erase(block);
  Check(free_(address), "cuMemFree");
}

}  // namespace torpor::memory
