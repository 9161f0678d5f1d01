#pragma once

#include <cuda_runtime_api.h>

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

// What a program registers before main, and what becomes of it at first use. Registering only
// remembers: a program may bring thousands of modules of which it uses ten.
namespace torpor::shim {

struct Module;

struct KernelOnDevice {
  std::uint64_t wire = 0;
  std::atomic<std::uint64_t> max_dynamic_shared{0};
};

// A kernel; the cudaKernel_t that programs hold is its address. Registered ones are never freed.
struct Kernel {
  Module* module = nullptr;
  const char* name = nullptr;  // mangled; lives as long as the kernel
  const void* host_function = nullptr;
  std::weak_ptr<void> library;  // that it lives in; none if it is registered

  bool is_described = false;  // then these are filled in; guarded by the module's mutex
  wire::KernelEntry entry;
  std::uint32_t parameter_bytes = 0;

  // Made with these, since most kernels of a program are never used.
  std::unique_ptr<PerDevice<KernelOnDevice>> on_devices;

  DeviceSet ready_on;  // there its executor knows it
  KernelOnDevice& here() const { return on_devices->here(); }
};

struct Variable {
  Module* module = nullptr;
  std::string name;
  std::uint64_t bytes = 0;
};

// A fatbin, or several that are linked, and what they registered, never freed; or what a program
// loads at run time (libraries.cc).
struct Module {
  const void* fatbin = nullptr;
  const void* const* parts = nullptr;   // of relocatable device code: fatbins, the last is null
  std::span<const std::uint8_t> image;  // what is loaded at run time, in place of a fatbin
  std::vector<std::string> variable_names;
  bool finds_variables = false;  // it has variables that nothing has registered

  std::mutex mutex;  // guards loading
  DeviceSet loaded_on;
  bool is_gone = false;  // the program has unloaded it for good
  PerDevice<std::uint64_t> wire;
  PerDevice<std::uint64_t> variables_block;  // address; 0: it has no variables
  std::unordered_map<std::string, wire::KernelEntry> kernels;
};

Module* RegisterModule(const void* wrapper);
void RegisterKernel(Module* module, const void* host_function, const char* name);
void RegisterVariable(Module* module, const void* host_variable, const char* name,
                      std::uint64_t bytes);

// Kernels and modules that come and go: FindKernel and UnloadAllModules know them meanwhile.
void AddModule(Module* module);
void RemoveModule(Module* module);
void AddKernel(Kernel* kernel);
void RemoveKernel(Kernel* kernel);

// Makes the executor of the device in use load the module, if it has not. `reason` is set where the
// executor gives one.
cudaError_t LoadModule(Module& module, std::string* reason = nullptr);
// From the device in use; what is used of it again is loaded again.
cudaError_t UnloadModule(Module& module);
// The module is not loaded again, even if a graph still knows its kernels:
// cudaErrorInvalidResourceHandle.
void LeaveUnloaded(Module& module);
// The kernel's handle at the executor goes; its module is about to.
cudaError_t ForgetKernel(Kernel& kernel);

// The kernel that `function` names: a host function or a cudaKernel_t. Null if neither.
Kernel* FindKernel(const void* function);
// The kernel, loaded. cudaErrorInvalidDeviceFunction if `function` names none.
cudaError_t UseKernel(const void* function, Kernel*& kernel);
cudaError_t PrepareKernel(Kernel& kernel);
// The kernel, kept in memory.
std::shared_ptr<Kernel> Hold(Kernel& kernel);
// The variable whose host shadow is at `symbol`, its module loaded. cudaErrorInvalidSymbol.
cudaError_t UseVariable(const void* symbol, const Variable*& variable);

// Unloads every module from the device in use; what is used of it again is loaded again, with the
// first values of its variables. No other thread uses CUDA meanwhile.
cudaError_t UnloadAllModules();

}  // namespace torpor::shim
