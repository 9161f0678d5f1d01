#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "client_shim/cudart/call/per_device.h"
#include "proto/cuda_api/cudart_commands.h"

// Modules, kernels and variables of the program. Registration, before main, only takes notes: a
// program may bring thousands of modules and use ten. Loading happens at first use, on the device
// in use. Thread-safe; a module's mutex orders its loading.
namespace torpor::shim {

struct ClientModule;

// A kernel at the executor of a device: the handle, and the attributes that the program has set as
// far as launches are checked by them. `required_cluster` is in blocks along each axis.
struct KernelOnDevice {
  std::uint64_t wire = 0;
  std::atomic<std::uint64_t> max_dynamic_shared{0};  // bytes
  std::atomic<bool> allows_large_clusters{false};
  std::array<std::atomic<std::uint32_t>, 3> required_cluster{};
};

// A kernel; a cudaKernel_t is the address of a ClientKernel. Registered kernels are never freed.
struct ClientKernel {
  ClientModule* module = nullptr;
  const char* name = nullptr;  // mangled; lives as long as the kernel
  const void* host_function = nullptr;
  std::weak_ptr<void> library;  // owner of a kernel loaded at run time; empty if registered

  bool is_described = false;  // the next three are filled in; guarded by the module's mutex
  wire::KernelEntry entry;
  std::uint32_t parameter_bytes = 0;

  // Allocated with the description, since most kernels of a program are never used.
  std::unique_ptr<PerDevice<KernelOnDevice>> on_devices;

  DeviceSet ready_on;  // devices with an executor that knows the kernel
  KernelOnDevice& here() const { return on_devices->here(); }
};

// A __device__ or __constant__ variable of a module.
struct ClientVariable {
  ClientModule* module = nullptr;
  std::string name;
  std::uint64_t bytes = 0;
};

// A fatbin, or several linked ones, with its registrations, never freed; or code that the program
// loads at run time (libraries.cc).
struct ClientModule {
  const void* fatbin = nullptr;
  const void* const* parts = nullptr;  // fatbins of relocatable device code, null at the end
  std::span<const std::uint8_t> code;  // code loaded at run time, in place of a fatbin
  std::vector<std::string> variable_names;
  bool finds_variables = false;  // the executor names variables that were not registered

  std::mutex mutex;  // guards loading
  DeviceSet loaded_on;
  bool is_gone = false;  // unloaded by the program for good
  PerDevice<std::uint64_t> wire;
  PerDevice<std::uint64_t> variables_block;  // address; 0 without variables
  std::unordered_map<std::string, wire::KernelEntry> kernels;
};

// For nvcc's static constructors. `wrapper`: nvcc's wrapper around a fatbin, alive until exit, as
// are names and host pointers.
ClientModule* RegisterModule(const void* wrapper);
void RegisterKernel(ClientModule* module, const void* host_function, const char* name);
void RegisterVariable(ClientModule* module, const void* host_variable, const char* name,
                      std::uint64_t bytes);

// Kernels and modules loaded at run time: known to FindKernel and UnloadAllModules from Add to
// Remove.
void AddModule(ClientModule* module);
void RemoveModule(ClientModule* module);
void AddKernel(ClientKernel* kernel);
void RemoveKernel(ClientKernel* kernel);

// Has the executor of the device in use load the module, once. On failure `reason`, if not null,
// gets the executor's message, if any.
cudaError_t LoadModule(ClientModule& module, std::string* reason = nullptr);
// Unloads the module from the device in use; a later use loads the module again.
cudaError_t UnloadModule(ClientModule& module);
// Bars the module from being loaded again, even for graphs with its kernels: later uses get
// cudaErrorInvalidResourceHandle.
void LeaveUnloaded(ClientModule& module);
// Drops the kernel's handle at the executor, before the module is unloaded.
cudaError_t ForgetKernel(ClientKernel& kernel);

// Finds the kernel of a host function or cudaKernel_t. Returns null for any other pointer.
ClientKernel* FindKernel(const void* function);
// The same with the kernel loaded on the device in use. cudaErrorInvalidDeviceFunction for a
// pointer that names no kernel.
cudaError_t UseKernel(const void* function, ClientKernel*& kernel);
// Loads the kernel on the device in use. Costs an atomic load once the kernel is ready.
cudaError_t PrepareKernel(ClientKernel& kernel);
// Keeps the kernel, and the library that owns the kernel, alive.
std::shared_ptr<ClientKernel> Hold(ClientKernel& kernel);
// Finds the variable of the host shadow `symbol` and loads the module. cudaErrorInvalidSymbol for
// an unknown symbol.
cudaError_t UseVariable(const void* symbol, const ClientVariable*& variable);

// Unloads every module from the device in use (cudaDeviceReset). A later use loads a module again,
// with the initial values of its variables. No other thread may use CUDA meanwhile.
cudaError_t UnloadAllModules();

}  // namespace torpor::shim
