#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"

// What a program registers before main, and what becomes of it at first use. Registering only
// remembers: a program may bring thousands of modules of which it uses ten.
namespace torpor::shim {

struct Module;

// A registered kernel; the cudaKernel_t that programs hold is its address. Never freed.
struct Kernel {
  Module* module = nullptr;
  const char* name = nullptr;  // mangled, the program's own static string
  const void* host_function = nullptr;

  std::atomic<bool> is_ready{false};  // then the rest is filled in
  std::uint64_t wire = 0;
  wire::KernelEntry entry;
  std::uint32_t parameter_bytes = 0;
  std::atomic<std::uint64_t> max_dynamic_shared{0};
};

struct Variable {
  Module* module = nullptr;
  std::string name;
  std::uint64_t bytes = 0;
};

// A fatbin, or several that are linked, and what they registered. Never freed.
struct Module {
  const void* fatbin = nullptr;
  const void* const* parts = nullptr;  // of relocatable device code: fatbins, the last is null
  std::vector<std::string> variable_names;

  std::mutex mutex;  // guards loading
  std::atomic<bool> is_loaded{false};
  std::uint64_t wire = 0;
  std::unordered_map<std::string, wire::KernelEntry> kernels;
};

Module* RegisterModule(const void* wrapper);
void RegisterKernel(Module* module, const void* host_function, const char* name);
void RegisterVariable(Module* module, const void* host_variable, const char* name,
                      std::uint64_t bytes);

// The kernel that `function` names: a host function or a cudaKernel_t. Null if neither.
Kernel* FindKernel(const void* function);
// The kernel, loaded. cudaErrorInvalidDeviceFunction if `function` names none.
cudaError_t UseKernel(const void* function, Kernel*& kernel);
cudaError_t PrepareKernel(Kernel& kernel);
// The variable whose host shadow is at `symbol`, its module loaded. cudaErrorInvalidSymbol.
cudaError_t UseVariable(const void* symbol, const Variable*& variable);

// Unloads every module; what is used of it again is loaded again, with the first values of its
// variables. No other thread uses CUDA meanwhile.
cudaError_t UnloadAllModules();

}  // namespace torpor::shim
