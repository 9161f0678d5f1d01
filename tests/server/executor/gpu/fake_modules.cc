// Modules, linked code, and launches of kernels.
#include <cstring>

#include "tests/server/executor/gpu/fake_driver_calls.h"
#include "tests/server/executor/gpu/module_walk.h"

namespace torpor::executor {

struct FakeDriverCalls::Modules {
  // One module: kernel "record" of one 8-byte parameter and variable "counter" of 8 bytes.
  static CUresult LoadModule(CUmodule* module, const void* image) {
    if (image != fake) WalkModule(image);  // which LinkComplete gives
    fake->variables_.push_back(0);
    return *module = reinterpret_cast<CUmodule>(++fake->modules_loaded_), Ok();
  }
  static CUresult LoadMachineCode(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                  void**) {
    return fake->has_machine_code_ ? LoadModule(module, image) : CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  static CUresult LinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
    return *state = reinterpret_cast<CUlinkState>(1), Ok();
  }
  static CUresult LinkAdd(CUlinkState, CUjitInputType type, void* data, std::size_t bytes,
                          const char*, unsigned, CUjit_option*, void**) {
    const auto* const first = static_cast<const std::uint8_t*>(data);
    if (type == CU_JIT_INPUT_FATBINARY) fake->linked_.emplace_back(first, first + bytes);
    return Ok();
  }
  static CUresult LinkComplete(CUlinkState, void** image, std::size_t*) {
    return *image = fake, Ok();
  }
  static CUresult LinkDestroy(CUlinkState) { return CUDA_SUCCESS; }
  static CUresult UnloadModule(CUmodule) { return CUDA_SUCCESS; }
  static CUresult CountFunctions(unsigned* count, CUmodule) { return *count = 1, Ok(); }
  // The kernel of each module has the module's number.
  static CUresult Enumerate(CUfunction* functions, unsigned, CUmodule module) {
    return functions[0] = reinterpret_cast<CUfunction>(module), Ok();
  }
  static CUresult Global(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                         const char* name) {
    if (std::strcmp(name, "counter") != 0) return CUDA_ERROR_NOT_FOUND;
    std::uint64_t& variable = fake->variables_.at(reinterpret_cast<std::uintptr_t>(module) - 1);
    *address = reinterpret_cast<CUdeviceptr>(&variable);
    *bytes = sizeof variable;
    return Ok();
  }
  static CUresult FuncLoad(CUfunction) { return Ok(); }
  static CUresult FunctionName(const char** name, CUfunction) { return *name = "record", Ok(); }
  static CUresult ParamInfo(CUfunction, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
    if (index >= fake->parameters_.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = fake->parameters_[index].offset;
    *bytes = fake->parameters_[index].bytes;
    return CUDA_SUCCESS;
  }
  static CUresult FunctionAttribute(int* value, CUfunction_attribute attribute,
                                    CUfunction function) {
    const auto set = fake->attributes_.find({function, attribute});
    return *value = set == fake->attributes_.end() ? 32 : set->second, Ok();
  }
  static CUresult SetFunctionAttribute(CUfunction function, CUfunction_attribute attribute,
                                       int value) {
    return fake->attributes_[{function, attribute}] = value, Ok();
  }
  static CUresult Occupancy(int* blocks, CUfunction, int, std::size_t, unsigned) {
    return *blocks = 4, Ok();
  }
  static CUresult Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, CUstream stream, void** parameters, void**) {
    if (fake->ignore_launches_) return Ok();
    std::uint64_t value = 0;
    std::memcpy(&value, parameters[0], sizeof value);
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kLaunch, 0, 0, 0, value});
    return Ok();
  }
  static CUresult LaunchEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void**) {
    fake->last_attributes_.assign(config->attrs, config->attrs + config->numAttrs);
    return Launch(f, 1, 1, 1, 1, 1, 1, 0, config->hStream, parameters, nullptr);
  }
};

void FakeDriverCalls::AddModules(CudaDriver& driver) {
  driver.ModuleLoadData = Modules::LoadModule;
  driver.ModuleLoadDataEx = Modules::LoadMachineCode;
  driver.LinkCreate = Modules::LinkCreate;
  driver.LinkAddData = Modules::LinkAdd;
  driver.LinkComplete = Modules::LinkComplete;
  driver.LinkDestroy = Modules::LinkDestroy;
  driver.ModuleUnload = Modules::UnloadModule;
  driver.ModuleGetFunctionCount = Modules::CountFunctions;
  driver.ModuleEnumerateFunctions = Modules::Enumerate;
  driver.ModuleGetGlobal = Modules::Global;
  driver.FuncLoad = Modules::FuncLoad;
  driver.FuncGetName = Modules::FunctionName;
  driver.FuncGetParamInfo = Modules::ParamInfo;
  driver.FuncGetAttribute = Modules::FunctionAttribute;
  driver.FuncSetAttribute = Modules::SetFunctionAttribute;
  driver.OccupancyMaxActiveBlocks = Modules::Occupancy;
  driver.LaunchKernel = Modules::Launch;
  driver.LaunchKernelEx = Modules::LaunchEx;
}

}  // namespace torpor::executor
