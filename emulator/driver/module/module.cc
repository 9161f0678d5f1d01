#include "emulator/driver/module/module.h"

#include <algorithm>
#include <utility>

#include "emulator/driver/base/exec_error.h"
#include "emulator/driver/base/messages.h"
#include "emulator/driver/device/device_limits.h"

namespace torpor::emulator {

FunctionObject::FunctionObject(std::shared_ptr<Program> program, const KernelInfo& info,
                               CUmodule module)
    : program_(std::move(program)),
      info_(info),
      module_(module),
      max_dynamic_shared_(static_cast<unsigned>(
          kSharedPerBlock - std::min(kSharedPerBlock, info.static_shared_bytes))) {}

CUresult FunctionObject::Compile(const Dim3& block) {
  if (compiled_.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  const auto compiled = program_->Preload(info_.name, block);
  if (!compiled.ok()) {
    Say(compiled.failure().message);
    return ToCuResult(compiled.failure().code);
  }
  compiled_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

DriverResult<int> FunctionObject::Attribute(CUfunction_attribute attribute) const {
  const auto as_int = [](auto value) { return static_cast<int>(value); };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: {
      const unsigned by_registers = kRegistersPerMultiprocessor / std::max(info_.registers, 1U);
      return as_int(std::min(info_.max_threads_per_block, by_registers));
    }
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return as_int(info_.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return as_int(info_.constant_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return as_int(info_.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return as_int(info_.registers);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return as_int(info_.ptx_version);
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return as_int(max_dynamic_shared());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return carveout_.load();
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      return info_.needs_cluster || info_.cluster.x != 0 ? 1 : 0;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return as_int(info_.cluster.x != 0 ? info_.cluster.x : required_cluster().x);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return as_int(info_.cluster.x != 0 ? info_.cluster.y : required_cluster().y);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return as_int(info_.cluster.x != 0 ? info_.cluster.z : required_cluster().z);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return large_clusters_.load();
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return cluster_policy_.load();
    default:
      if (attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX) return 0;
      return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, "no such attribute"};
  }
}

CUresult FunctionObject::SetAttribute(CUfunction_attribute attribute, int value,
                                      unsigned shared_optin) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || static_cast<Bytes>(value) + info_.static_shared_bytes > shared_optin) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      max_dynamic_shared_ = static_cast<unsigned>(value);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      carveout_ = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      if (info_.cluster.x != 0) return CUDA_ERROR_INVALID_VALUE;
      if (value < 0) return CUDA_ERROR_INVALID_VALUE;
      required_cluster_[static_cast<std::size_t>(attribute -
                                                 CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      if (value < 0 || value > 1) return CUDA_ERROR_INVALID_VALUE;
      large_clusters_ = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (value < 0 || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      cluster_policy_ = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

Dim3 FunctionObject::required_cluster() const {
  const auto axis = [&](std::size_t i) {
    return static_cast<std::uint32_t>(required_cluster_[i].load());
  };
  return {axis(0), axis(1), axis(2)};
}

ModuleObject::ModuleObject(std::shared_ptr<Program> program, std::weak_ptr<Context> context,
                           FunctionTable& function_table, TakenMemory code)
    : program_(std::move(program)),
      context_(std::move(context)),
      function_table_(function_table),
      code_(std::move(code)),
      kernels_(program_->kernels()) {}

ModuleObject::~ModuleObject() {
  for (CUfunction function : functions_) function_table_.Destroy(function);
}

void ModuleObject::AddFunctions(CUmodule handle) {
  functions_.reserve(kernels_.size());
  for (const KernelInfo& kernel : kernels_) {
    // Work in flight outlives the module, so a function refers to the program's description.
    functions_.push_back(function_table_.Create(
        std::make_shared<FunctionObject>(program_, *program_->FindKernel(kernel.name), handle)));
  }
}

CUfunction ModuleObject::Find(std::string_view name) const {
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return functions_[i];
  }
  return nullptr;
}

const GlobalVariable* ModuleObject::FindVariable(std::string_view name) const {
  const auto& variables = program_->variables();
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const GlobalVariable& v) { return v.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace torpor::emulator
