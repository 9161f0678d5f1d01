#include "tests/conformance/gpu.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace torpor::conformance {

// The calls that are made, found in the library.
struct Gpu::Driver {
  bool Load(const std::string& library, std::string& error) {
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      error = dlerror();
      return false;
    }
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) error = library + " has no " + name;
    };
    find(init, "cuInit");
    find(get_name, "cuDeviceGetName");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(release, "cuDevicePrimaryCtxRelease_v2");
    find(set_current, "cuCtxSetCurrent");
    find(synchronize, "cuCtxSynchronize");
    find(allocate, "cuMemAlloc_v2");
    find(upload, "cuMemcpyHtoD_v2");
    find(download, "cuMemcpyDtoH_v2");
    find(fill, "cuMemsetD8_v2");
    find(load, "cuModuleLoadDataEx");
    find(unload, "cuModuleUnload");
    find(get_function, "cuModuleGetFunction");
    find(launch, "cuLaunchKernel");
    find(error_name, "cuGetErrorName");
    return error.empty();
  }

  std::string NameOf(CUresult result) const {
    const char* name = nullptr;
    return error_name(result, &name) == CUDA_SUCCESS ? name : "an unknown error";
  }

  // For calls that fail only where nothing can go on.
  void Must(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    std::fprintf(stderr, "%s: %s\n", what, NameOf(result).c_str());
    std::exit(2);
  }

  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDeviceGetName) get_name = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) release = nullptr;
  decltype(&::cuCtxSetCurrent) set_current = nullptr;
  decltype(&::cuCtxSynchronize) synchronize = nullptr;
  decltype(&::cuMemAlloc) allocate = nullptr;
  decltype(&::cuMemcpyHtoD) upload = nullptr;
  decltype(&::cuMemcpyDtoH) download = nullptr;
  decltype(&::cuMemsetD8) fill = nullptr;
  decltype(&::cuModuleLoadDataEx) load = nullptr;
  decltype(&::cuModuleUnload) unload = nullptr;
  decltype(&::cuModuleGetFunction) get_function = nullptr;
  decltype(&::cuLaunchKernel) launch = nullptr;
  decltype(&::cuGetErrorName) error_name = nullptr;
};

Gpu::Gpu(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}

// With the context goes the memory.
Gpu::~Gpu() { driver_->release(device_); }

std::unique_ptr<Gpu> Gpu::Open(const std::string& library, std::string& error) {
  auto driver = std::make_unique<Driver>();
  if (!driver->Load(library, error)) return nullptr;
  CUcontext context = nullptr;
  CUresult result = driver->init(0);
  if (result == CUDA_SUCCESS) result = driver->retain(&context, 0);
  if (result == CUDA_SUCCESS) result = driver->set_current(context);
  if (result != CUDA_SUCCESS) {
    error = "no GPU by " + library + ": " + driver->NameOf(result);
    return nullptr;
  }
  return std::unique_ptr<Gpu>(new Gpu(std::move(driver)));
}

std::string Gpu::Name() const {
  std::array<char, 128> name{};
  driver_->Must(driver_->get_name(name.data(), static_cast<int>(name.size()), device_), "its name");
  return name.data();
}

CUdeviceptr Gpu::Allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  driver_->Must(driver_->allocate(&address, bytes), "allocating memory");
  Clear(address, bytes);
  return address;
}

void Gpu::Upload(CUdeviceptr target, std::span<const std::byte> bytes) {
  driver_->Must(driver_->upload(target, bytes.data(), bytes.size()), "an upload");
}

void Gpu::Clear(CUdeviceptr target, std::size_t bytes) {
  driver_->Must(driver_->fill(target, 0, bytes), "a fill");
}

void Gpu::Download(std::span<std::byte> bytes, CUdeviceptr source) {
  driver_->Must(driver_->download(bytes.data(), source, bytes.size()), "a download");
}

std::string Gpu::Run(const std::string& image, const char* name, unsigned blocks, unsigned threads,
                     const std::array<CUdeviceptr, 3>& parameters) {
  std::vector<char> log(4096);
  std::array<CUjit_option, 2> options = {CU_JIT_ERROR_LOG_BUFFER,
                                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  CUresult result =
      driver_->load(&module, image.c_str(), options.size(), options.data(), values.data());
  if (result != CUDA_SUCCESS) return driver_->NameOf(result) + " " + log.data();
  CUfunction function = nullptr;
  result = driver_->get_function(&function, module, name);
  std::array<CUdeviceptr, 3> own = parameters;
  std::array<void*, 3> pointers = {&own[0], &own[1], &own[2]};
  if (result == CUDA_SUCCESS)
    result = driver_->launch(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, pointers.data(),
                             nullptr);
  if (result == CUDA_SUCCESS) result = driver_->synchronize();
  driver_->unload(module);
  return result == CUDA_SUCCESS ? "" : driver_->NameOf(result);
}

}  // namespace torpor::conformance
