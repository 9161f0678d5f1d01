#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

// __managed__ variables. Kernels use the variable of the loaded module, the program a block of the
// host arena; the two are made equal before a launch and after a synchronisation, so the program
// must not touch the variables while kernels run (as on GPUs before Pascal). Addresses in the
// block stand for the variable in kernel parameters.
namespace torpor::shim {

struct Module;

void RegisterManagedVariable(Module* module, void** host_pointer, const char* name,
                             std::uint64_t bytes);

// Makes the module's variables the program's: from then on the pointers that nvcc registered are
// set. Called at the program's first use of one.
cudaError_t InitManagedVariables(Module* module);

// Whether any variable is the program's.
bool UsesManagedVariables();
// Queues a launch by `queue` once the device in use has what the program has written, or another
// device's kernels, which are waited for. One launch at a time.
cudaError_t LaunchBesideVariables(const std::function<cudaError_t()>& queue);
template <typename Queue>
cudaError_t LaunchWithVariables(const Queue& queue) {
  return UsesManagedVariables() ? LaunchBesideVariables(queue) : queue();
}

// After a synchronisation: waits for the device, and the program gets what kernels have written.
cudaError_t FetchManagedVariables();
// The same, if [pointer, pointer + bytes) meets one, before the program's copy or fill, which then
// must not be asynchronous.
cudaError_t FetchManagedVariablesAt(const void* pointer, std::uint64_t bytes, bool& meets_one);
// Bytes of the variable whose block begins at `symbol`, as which nvcc's code names it; 0 if there
// is none.
std::uint64_t ManagedVariableBytes(const void* symbol);
// For copies and fills in graphs: cudaErrorNotSupported, and a word, if [pointer, pointer + bytes)
// meets a variable.
cudaError_t RefuseManagedVariables(const void* pointer, std::uint64_t bytes);

// The variables get new blocks with their first values: the session's memory and modules are gone
// (cudaDeviceReset).
cudaError_t ResetManagedVariables();

}  // namespace torpor::shim
