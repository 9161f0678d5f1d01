#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

// __managed__ variables. Kernels use the variable of the loaded module, the program a block of the
// host arena. Both are made equal before a launch and after a synchronisation, so the program must
// not touch the variables while kernels run (as on GPUs before Pascal). In kernel parameters,
// addresses in the block stand for the variable. Thread-safe.
namespace torpor::shim {

struct ClientModule;

// For nvcc's static constructors. Pointers and name live until exit; `host_pointer` is set at first
// use.
void RegisterManagedVariable(ClientModule* module, void** host_pointer, const char* name,
                             std::uint64_t bytes);

// Allocates the blocks of the module's variables and sets the pointers registered by nvcc's code.
// Called at the program's first use of a variable.
cudaError_t InitManagedVariables(ClientModule* module);

// Whether any variable has a block. Costs an atomic load.
bool UsesManagedVariables();
// Brings the writes of the program, and of another device's kernels, to the device in use, then
// queues a launch by `queue`. Waits for the other device. Launches exclude one another.
cudaError_t LaunchBesideVariables(const std::function<cudaError_t()>& queue);
// The same; without variables in use, calls `queue` directly.
template <typename Queue>
cudaError_t LaunchWithVariables(const Queue& queue) {
  return UsesManagedVariables() ? LaunchBesideVariables(queue) : queue();
}

// Brings the writes of kernels to the program, after a synchronisation. Waits for the device of the
// latest launch.
cudaError_t FetchManagedVariables();
// The same before a copy or fill of [pointer, pointer + bytes) by the program, if the range meets a
// variable. With `meets_one` set the copy or fill must be waited for.
cudaError_t FetchManagedVariablesAt(const void* pointer, std::uint64_t bytes, bool& meets_one);
// Bytes of the variable whose block begins at `symbol` (the name in nvcc's code); 0 if no
// variable's does.
std::uint64_t ManagedVariableBytes(const void* symbol);
// Refuses copies and fills in graphs: warns and returns cudaErrorNotSupported if
// [pointer, pointer + bytes) meets a variable.
cudaError_t RefuseManagedVariables(const void* pointer, std::uint64_t bytes);

// Gives the variables new blocks with initial values (cudaDeviceReset). Call after the session's
// memory and modules are gone.
cudaError_t ResetManagedVariables();

}  // namespace torpor::shim
