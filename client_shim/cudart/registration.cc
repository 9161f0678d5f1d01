#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/module/modules.h"

// The entries called by nvcc's static constructors (module/modules.h). The handle in nvcc's code is
// the ClientModule.
using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

namespace {

ClientModule* Registered(void** handle) { return reinterpret_cast<ClientModule*>(handle); }

}  // namespace

void** __cudaRegisterFatBinary(void* fat_binary) {
  return reinterpret_cast<void**>(RegisterModule(fat_binary));
}

void __cudaRegisterFatBinaryEnd(void**) {}

// Called from exit handlers while other threads may still launch, so the module stays.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                            const char* device_name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  RegisterKernel(Registered(handle), host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int,
                       size_t bytes, int, int) {
  RegisterVariable(Registered(handle), host_variable, device_name, bytes);
}

// Like any other variable, known by the address of the program's pointer.
void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* device_name,
                              int, size_t bytes, int, int) {
  RegisterVariable(Registered(handle), host_variable, device_name, bytes);
  RegisterManagedVariable(Registered(handle), host_variable, device_name, bytes);
}

// Called before the program's first use of the module's managed variables. Cannot report failure.
char __cudaInitModule(void** handle) {
  Entry([&] { return InitManagedVariables(Registered(handle)); });
  return 1;
}
