#include "emulator/driver/module.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/fatbin.h"
#include "emulator/driver/context.h"
#include "emulator/driver/device_limits.h"
#include "emulator/driver/driver.h"
#include "emulator/driver/linked_image.h"

namespace torpor::emulator {
namespace {

DriverResult<std::string> FatbinPtx(const void* data, unsigned compute_capability) {
  const std::uint64_t size = FatbinSize(data);
  if (size == 0) {
    return Failure<CUresult>{CUDA_ERROR_INVALID_IMAGE, "not a fatbin container"};
  }
  auto ptx = SelectPtx({static_cast<const std::byte*>(data), size}, compute_capability);
  if (ptx.ok()) return std::move(ptx).value();
  const CUresult code = ptx.failure().code == FatbinError::kNoPtx ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                                                  : CUDA_ERROR_INVALID_IMAGE;
  return Failure<CUresult>{code, ptx.failure().message};
}

std::uint32_t MagicOf(const void* image) {
  std::uint32_t magic = 0;
  // Text may be shorter than the magic, but NUL ends it.
  std::memcpy(&magic, image, strnlen(static_cast<const char*>(image), sizeof(magic)));
  return magic;
}

DriverResult<std::string> ImagePtx(const void* image, unsigned compute_capability) {
  constexpr char kElfMagic[4] = {0x7f, 'E', 'L', 'F'};
  const std::uint32_t magic = MagicOf(image);
  if (magic == kFatbinMagic) return FatbinPtx(image, compute_capability);
  if (magic == kFatbinWrapperMagic) {
    return FatbinPtx(static_cast<const FatbinWrapper*>(image)->data, compute_capability);
  }
  if (std::memcmp(&magic, kElfMagic, sizeof(magic)) == 0) {
    return Failure<CUresult>{CUDA_ERROR_NO_BINARY_FOR_GPU,
                             "a cubin holds machine code for a real GPU; the emulator needs PTX"};
  }
  return std::string(static_cast<const char*>(image));
}

ExecResult<std::unique_ptr<Program>> LoadLinked(const void* image, Device& device) {
  const auto parts = DecodeLinkedImage(image);
  if (parts) return Program::Load(*parts, device, device.traits());
  return Failure<ExecError>{ExecError::kInvalidPtx, "a linked image that is damaged"};
}

DriverResult<std::unique_ptr<Program>> LoadProgram(const void* image, Device& device) {
  ExecResult<std::unique_ptr<Program>> program(std::unique_ptr<Program>{});
  if (MagicOf(image) == kLinkedImageMagic) {
    program = LoadLinked(image, device);
  } else {
    auto ptx = ImagePtx(image, device.spec().compute_capability);
    if (!ptx.ok()) return ptx.failure();
    program = Program::Load(*ptx, device, device.traits());
  }
  if (program.ok()) return std::move(program).value();
  return Failure<CUresult>{ToCuResult(program.failure().code),
                           "cannot load a module: " + program.failure().message};
}

}  // namespace

CUresult ToCuResult(ExecError error) {
  switch (error) {
    case ExecError::kInvalidPtx:
      return CUDA_ERROR_INVALID_PTX;
    case ExecError::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case ExecError::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case ExecError::kInvalidLaunch:
      return CUDA_ERROR_INVALID_VALUE;
    case ExecError::kTooManyThreads:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case ExecError::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ExecError::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ExecError::kTrap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case ExecError::kAssert:
      return CUDA_ERROR_ASSERT;
    case ExecError::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_ERROR_UNKNOWN;
}

Function::Function(std::shared_ptr<Program> program, const KernelInfo& info, CUmodule module)
    : program_(std::move(program)),
      info_(info),
      module_(module),
      max_dynamic_shared_(static_cast<unsigned>(
          kSharedPerBlock - std::min(kSharedPerBlock, info.static_shared_bytes))) {}

CUresult Function::Load(const Dim3& block) {
  if (loaded()) return CUDA_SUCCESS;
  const auto compiled = program_->Preload(info_.name, block);
  if (!compiled.ok()) {
    Say(compiled.failure().message);
    return ToCuResult(compiled.failure().code);
  }
  loaded_.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

DriverResult<int> Function::Attribute(CUfunction_attribute attribute) const {
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
    default:
      if (attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX) return 0;
      return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, "no such attribute"};
  }
}

CUresult Function::SetAttribute(CUfunction_attribute attribute, int value, unsigned shared_optin) {
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
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

Module::Module(std::shared_ptr<Program> program, std::weak_ptr<Context> context)
    : program_(std::move(program)), context_(std::move(context)), kernels_(program_->kernels()) {}

Module::~Module() {
  for (CUfunction function : functions_) Driver::Get().functions().Destroy(function);
}

void Module::AddFunctions(CUmodule handle) {
  functions_.reserve(kernels_.size());
  for (const KernelInfo& kernel : kernels_) {
    // Work in flight outlives the module: a function reads its description from the program.
    functions_.push_back(Driver::Get().functions().Create(
        std::make_shared<Function>(program_, *program_->FindKernel(kernel.name), handle)));
  }
}

CUfunction Module::Find(std::string_view name) const {
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].name == name) return functions_[i];
  }
  return nullptr;
}

const GlobalVariable* Module::FindVariable(std::string_view name) const {
  const auto& variables = program_->variables();
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const GlobalVariable& v) { return v.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

DriverResult<CUmodule> LoadModule(const void* image, const std::shared_ptr<Context>& context) {
  auto program = LoadProgram(image, context->device());
  if (!program.ok()) return program.failure();
  const auto module =
      std::make_shared<Module>(std::shared_ptr<Program>(std::move(program).value()), context);
  CUmodule handle = Driver::Get().modules().Create(module);
  module->AddFunctions(handle);
  return handle;
}

}  // namespace torpor::emulator
