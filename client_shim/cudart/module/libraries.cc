#include "client_shim/cudart/module/libraries.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/module/jit_options.h"
#include "client_shim/cudart/module/module_code.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/symbol_addresses.h"
#include "client_shim/cudart/module/variable_address.h"

namespace torpor::shim {
namespace {

// A module loaded at run time, with its kernels. A cudaLibrary_t is the address of a Library.
struct Library {
  ClientModule module;
  std::vector<std::uint8_t> code;  // kept for loading again after cudaDeviceReset
  std::map<std::string, ClientKernel> kernels;

  std::mutex mutex;                                 // guards the members below
  std::map<std::string, ClientVariable> variables;  // requested by the program so far
};
using LibraryPtr = std::shared_ptr<Library>;

// The live libraries. Thread-safe.
class Libraries {
 public:
  void Add(LibraryPtr library) {
    std::lock_guard lock(mutex_);
    libraries_.emplace(library.get(), std::move(library));
  }
  // Returns null if no live library has the handle.
  LibraryPtr Find(cudaLibrary_t handle) {
    std::lock_guard lock(mutex_);
    const auto found = libraries_.find(reinterpret_cast<Library*>(handle));
    return found == libraries_.end() ? nullptr : found->second;
  }
  LibraryPtr FindByModule(const ClientModule* module) {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(libraries_.begin(), libraries_.end(), [&](const auto& entry) {
      return &entry.second->module == module;
    });
    return found == libraries_.end() ? nullptr : found->second;
  }
  LibraryPtr Take(cudaLibrary_t handle) {
    std::lock_guard lock(mutex_);
    const auto node = libraries_.extract(reinterpret_cast<Library*>(handle));
    return node.empty() ? nullptr : node.mapped();
  }

 private:
  std::mutex mutex_;
  std::map<Library*, LibraryPtr> libraries_;
};

Libraries& TheLibraries() {
  static auto* const libraries = new Libraries();
  return *libraries;
}

// Finds a library and loads the module on the device in use.
cudaError_t UseLibrary(cudaLibrary_t handle, LibraryPtr& library) {
  TORPOR_TRY(Begin());
  library = TheLibraries().Find(handle);
  return library ? LoadModule(library->module) : cudaErrorInvalidResourceHandle;
}

// Makes a ClientKernel of every kernel of the loaded module.
void ListKernels(const LibraryPtr& library) {
  for (const auto& [name, entry] : library->module.kernels) {
    auto& [key, kernel] = *library->kernels.try_emplace(name).first;
    kernel.module = &library->module;
    kernel.library = library;
    kernel.name = key.c_str();
    AddKernel(&kernel);
  }
}

// Loads at once, so that a program learns of errors in the code now.
cudaError_t Load(cudaLibrary_t* out, std::vector<std::uint8_t> code, const JitOptions& options) {
  const auto library = std::make_shared<Library>();
  library->code = std::move(code);
  library->module.code = library->code;
  library->module.finds_variables = true;
  std::string reason;
  const cudaError_t error = LoadModule(library->module, &reason);
  options.Report(reason);
  TORPOR_TRY(error);
  ListKernels(library);
  AddModule(&library->module);
  TheLibraries().Add(library);
  *out = reinterpret_cast<cudaLibrary_t>(library.get());
  return cudaSuccess;
}

cudaError_t LoadData(cudaLibrary_t* library, const void* given, const JitOptions& options) {
  if (!library) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  std::vector<std::uint8_t> code;
  TORPOR_TRY(CopyModuleCode(given, code));
  return Load(library, std::move(code), options);
}

cudaError_t LoadFile(cudaLibrary_t* library, const char* path, const JitOptions& options) {
  if (!library) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  std::vector<std::uint8_t> file;
  TORPOR_TRY(ReadModuleFile(path, file));
  std::vector<std::uint8_t> code;
  TORPOR_TRY(CopyModuleCode(file.data(), code));
  return Load(library, std::move(code), options);
}

// Frees the block of the module's variables on the device in use, after the device's work.
cudaError_t FreeVariables(ClientModule& module) {
  const std::uint64_t block = std::exchange(module.variables_block.here(), 0);
  if (block == 0) return cudaSuccess;
  TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  return Core().Free(block);
}

// Unloads the library from the device in use.
cudaError_t UnloadFrom(Library& library) {
  for (auto& [name, kernel] : library.kernels) TORPOR_TRY(ForgetKernel(kernel));
  for (const auto& [name, variable] : library.variables) ForgetSymbolAddress(&variable);
  const bool was_loaded = library.module.loaded_on.HasCurrent();
  TORPOR_TRY(UnloadModule(library.module));
  return was_loaded ? FreeVariables(library.module) : cudaSuccess;
}

// Unloads from all devices. Graphs with kernels of the library keep the ClientKernel objects.
cudaError_t Unload(cudaLibrary_t handle) {
  TORPOR_TRY(Begin());
  const LibraryPtr library = TheLibraries().Take(handle);
  if (!library) return cudaErrorInvalidResourceHandle;
  RemoveModule(&library->module);
  for (auto& [name, kernel] : library->kernels) RemoveKernel(&kernel);
  LeaveUnloaded(library->module);
  return ForEachDevice([&] { return UnloadFrom(*library); });
}

cudaError_t GetKernel(cudaKernel_t* kernel, cudaLibrary_t handle, const char* name) {
  if (!kernel || !name) return cudaErrorInvalidValue;
  LibraryPtr library;
  TORPOR_TRY(UseLibrary(handle, library));
  const auto found = library->kernels.find(name);
  if (found == library->kernels.end()) return cudaErrorSymbolNotFound;
  *kernel = reinterpret_cast<cudaKernel_t>(&found->second);
  return cudaSuccess;
}

cudaError_t EnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t handle) {
  if (!kernels) return cudaErrorInvalidValue;
  LibraryPtr library;
  TORPOR_TRY(UseLibrary(handle, library));
  for (auto& [name, kernel] : library->kernels) {
    if (count-- == 0) break;
    *kernels++ = reinterpret_cast<cudaKernel_t>(&kernel);
  }
  return cudaSuccess;
}

// Finds a variable by name; address or size may be null.
cudaError_t GetVariable(void** address, std::size_t* bytes, cudaLibrary_t handle,
                        const char* name) {
  if (!name) return cudaErrorInvalidValue;
  LibraryPtr library;
  TORPOR_TRY(UseLibrary(handle, library));
  std::lock_guard lock(library->mutex);
  const auto [found, is_new] = library->variables.try_emplace(name);
  ClientVariable& variable = found->second;
  variable.module = &library->module;
  variable.name = name;
  SymbolSpan span;
  const cudaError_t error = FindVariable(variable, span);
  if (error != cudaSuccess) {
    if (is_new) library->variables.erase(found);
    return error == cudaErrorInvalidSymbol ? cudaErrorSymbolNotFound : error;
  }
  if (address) *address = reinterpret_cast<void*>(span.begin);
  if (bytes) *bytes = span.bytes;
  return cudaSuccess;
}

}  // namespace

cudaError_t FindLibraryOf(const void* function, cudaLibrary_t& handle) {
  const ClientKernel* const kernel = FindKernel(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  const LibraryPtr library = TheLibraries().FindByModule(kernel->module);
  handle = reinterpret_cast<cudaLibrary_t>(library.get());
  return library ? cudaSuccess : cudaErrorNotSupported;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code,
                                enum cudaJitOption* options, void** values, unsigned int count,
                                enum cudaLibraryOption*, void**, unsigned int) {
  return Entry([&] { return LoadData(library, code, JitOptions(options, values, count)); });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path,
                                    enum cudaJitOption* options, void** values, unsigned int count,
                                    enum cudaLibraryOption*, void**, unsigned int) {
  return Entry([&] { return LoadFile(library, path, JitOptions(options, values, count)); });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return Entry([&] { return Unload(library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return Entry([&] { return GetKernel(kernel, library, name); });
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t handle) {
  return Entry([&]() -> cudaError_t {
    if (!count) return cudaErrorInvalidValue;
    LibraryPtr library;
    TORPOR_TRY(UseLibrary(handle, library));
    *count = static_cast<unsigned>(library->kernels.size());
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int count,
                                        cudaLibrary_t library) {
  return Entry([&] { return EnumerateKernels(kernels, count, library); });
}

cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  return Entry([&] { return GetVariable(address, bytes, library, name); });
}
