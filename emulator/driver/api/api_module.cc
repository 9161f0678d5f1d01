// Modules, libraries, functions and their attributes.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "emulator/driver/api/api.h"
#include "emulator/driver/module/jit_log.h"
#include "emulator/driver/module/load_program.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// The limit of dynamic shared memory on the function's device; 0 if the context is gone.
unsigned SharedOptIn(const FunctionObject& function) {
  const ModuleObject* module = Driver::Get().modules().Get(function.module());
  const auto context = module == nullptr ? nullptr : module->context().lock();
  return context == nullptr
             ? 0
             : static_cast<unsigned>(context->device().traits().shared_bytes_per_block);
}

// Calls `body(FunctionObject&)`, or returns CUDA_ERROR_INVALID_HANDLE.
template <typename Body>
CUresult OnFunction(CUfunction handle, Body&& body, const char* name = __builtin_FUNCTION()) {
  return Call(
      [&](Driver& driver) -> CUresult {
        FunctionObject* function = driver.functions().Get(handle);
        return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*function);
      },
      name);
}

// Calls `body(const ModuleObject&)`, or returns CUDA_ERROR_INVALID_HANDLE.
template <typename Body>
CUresult OnModule(CUmodule handle, Body&& body, const char* name = __builtin_FUNCTION()) {
  return Call(
      [&](Driver& driver) -> CUresult {
        const ModuleObject* module = driver.modules().Get(handle);
        return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(*module);
      },
      name);
}

// Loads a module from a file of any supported format.
CUresult LoadFile(CUmodule* module, const char* path) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  // The terminating NUL ends PTX text, and does no harm behind a fatbin.
  std::string code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return cuModuleLoadData(module, code.c_str());
}

CostedCall CostOfModule(DriverDevice& device) {
  return {device.call_costs(), device.call_costs().costs().module_ms * 1000};
}

// Makes the handles of a loaded module and of its functions.
CUmodule AddModule(std::unique_ptr<Program> program, Context& context, TakenMemory memory) {
  Driver& driver = Driver::Get();
  const auto module = std::make_shared<ModuleObject>(std::move(program), context.weak_from_this(),
                                                     driver.functions(), std::move(memory));
  CUmodule handle = driver.modules().Create(module);
  module->AddFunctions(handle);
  return handle;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* code) {
  return cuModuleLoadDataEx(module, code, 0, nullptr, nullptr);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned int count,
                                    CUjit_option* options, void** values) {
  return InContext([&](Context& context) {
    if (module == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CostedCall cost = CostOfModule(context.device());
    JitLog log(count, options, values);
    DriverDevice& device = context.device();
    const torpor::Bytes bytes = device.strict().memory_overheads ? ModuleBytes(code) : 0;
    auto memory = TakenMemory::Take(device.budget(), bytes);
    if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
    auto loaded = LoadProgram(code, device);
    if (!loaded.ok()) {
      log.Tell(loaded.failure().message);
      return loaded.failure().code;
    }
    *module = AddModule(std::move(loaded).value(), context, std::move(*memory));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* code) {
  return cuModuleLoadData(module, code);
}

CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) {
  return Call([&](Driver&) { return LoadFile(module, path); });
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return Call([&](Driver& driver) -> CUresult {
    const ModuleObject* found = driver.modules().Get(module);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    // Variables of the module must outlive the kernels in flight.
    const auto context = found->context().lock();
    if (context != nullptr) {
      context->WaitAll();
      const CostedCall cost = CostOfModule(context->device());
      driver.modules().Destroy(module);
    } else {
      driver.modules().Destroy(module);
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return OnModule(module, [&](const ModuleObject& found) {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = found.Find(name);
    return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule module) {
  return OnModule(module, [&](const ModuleObject& found) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(found.functions().size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count,
                                            CUmodule module) {
  return OnModule(module, [&](const ModuleObject& found) {
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(found.functions().begin(), std::min<std::size_t>(count, found.functions().size()),
                functions);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                   const char* name) {
  return OnModule(module, [&](const ModuleObject& found) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GlobalVariable* variable = found.FindVariable(name);
    if (variable == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = variable->address;
    if (bytes != nullptr) *bytes = variable->size;
    return CUDA_SUCCESS;
  });
}

// A library is a module of the context in which the program loads it; a kernel is a function.
CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                                   unsigned int, CUlibraryOption*, void**, unsigned int) {
  return cuModuleLoadData(reinterpret_cast<CUmodule*>(library), code);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                                       unsigned int, CUlibraryOption*, void**, unsigned int) {
  return cuModuleLoad(reinterpret_cast<CUmodule*>(library), path);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  return cuModuleUnload(reinterpret_cast<CUmodule>(library));
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction*>(kernel),
                             reinterpret_cast<CUmodule>(library), name);
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return cuModuleGetFunctionCount(count, reinterpret_cast<CUmodule>(library));
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count,
                                           CUlibrary library) {
  return cuModuleEnumerateFunctions(reinterpret_cast<CUfunction*>(kernels), count,
                                    reinterpret_cast<CUmodule>(library));
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return OnModule(reinterpret_cast<CUmodule>(library), [&](const ModuleObject&) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                    const char* name) {
  return cuModuleGetGlobal(address, bytes, reinterpret_cast<CUmodule>(library), name);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return OnFunction(reinterpret_cast<CUfunction>(kernel), [&](FunctionObject&) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return cuFuncGetModule(reinterpret_cast<CUmodule*>(library),
                         reinterpret_cast<CUfunction>(kernel));
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, size);
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                      CUdevice) {
  return cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                      CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice) {
  return cuFuncSetCacheConfig(reinterpret_cast<CUfunction>(kernel), config);
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction function) {
  return OnFunction(function, [&](FunctionObject& found) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = found.module();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction function) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return OnFunction(function, [&](FunctionObject& found) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = found.info().name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset,
                                    size_t* size) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return OnFunction(function, [&](FunctionObject& found) {
    const auto& parameters = found.info().parameters;
    if (offset == nullptr || index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = parameters[index].offset;
    if (size != nullptr) *size = parameters[index].size;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                    CUfunction function) {
  return OnFunction(function, [&](FunctionObject& found) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto answer = found.Attribute(attribute);
    if (!answer.ok()) return answer.failure().code;
    *value = *answer;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                    int value) {
  return OnFunction(function, [&](FunctionObject& found) {
    return found.SetAttribute(attribute, value, SharedOptIn(found));
  });
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return OnFunction(function, [](FunctionObject&) { return CUDA_SUCCESS; });
}

// The first launch compiles the kernel, since only a launch tells the shape of blocks.
CUresult CUDAAPI cuFuncLoad(CUfunction function) {
  return OnFunction(function, [](FunctionObject& found) {
    found.MarkLoaded();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return OnFunction(function, [&](FunctionObject& found) {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *state = found.loaded() ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
