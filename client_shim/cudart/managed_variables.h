#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

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

// Before a launch: the GPU gets what the program has written.
cudaError_t SendManagedVariables();
// After a synchronisation: waits for the device, and the program gets what kernels have written.
cudaError_t FetchManagedVariables();
// The same, if [pointer, pointer + bytes) meets one, before the program's copy or fill, which then
// must not be asynchronous.
cudaError_t FetchManagedVariablesAt(const void* pointer, std::uint64_t bytes, bool& meets_one);

// The variables get new blocks with their first values: the session's memory and modules are gone
// (cudaDeviceReset).
cudaError_t ResetManagedVariables();

}  // namespace torpor::shim
