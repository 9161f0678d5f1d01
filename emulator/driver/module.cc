#include "emulator/driver/module.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/cubin_source.h"
#include "emulator/driver/device_limits.h"
#include "emulator/driver/driver.h"
#include "emulator/driver/linked_image.h"
#include "emulator/sass/cubin.h"
#include "nvidia/elf_file.h"
#include "nvidia/fatbin.h"

namespace torpor::emulator {
namespace {

std::string CapabilityText(unsigned compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

// Why a module of machine code cannot run here, and what would help. `no_ptx` says both of its PTX.
std::string NoCodeText(std::string no_ptx, std::span<const unsigned> held,
                       unsigned compute_capability) {
  std::string text = std::move(no_ptx) + ". It has machine code for";
  for (const unsigned architecture : held) text += " sm_" + std::to_string(architecture);
  text += ", which a GPU of compute capability " + CapabilityText(compute_capability) +
          " does not run here";
  for (const unsigned architecture : sass::kArchitectures) {
    if (std::ranges::find(held, architecture) == held.end()) continue;
    text.append("; an emulated GPU with `compute_capability: ");
    text.append(CapabilityText(architecture));
    return text.append(
        "` in its topology does (torporctl run --standalone --topology turing-1gpu)");
  }
  return text;
}

Failure<CUresult> ToDriverFailure(const Failure<FatbinError>& failure) {
  const bool malformed = failure.code == FatbinError::kMalformed;
  return {malformed ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU, failure.message};
}

Failure<CUresult> ToDriverFailure(const Failure<ExecError>& failure) {
  return {ToCuResult(failure.code), "cannot load a module: " + failure.message};
}

using LoadedProgram = DriverResult<std::unique_ptr<Program>>;

LoadedProgram ToLoaded(ExecResult<std::unique_ptr<Program>> program) {
  if (program.ok()) return std::move(program).value();
  return ToDriverFailure(program.failure());
}

bool Runs(unsigned architecture, unsigned compute_capability) {
  return RunsMachineCode(architecture, compute_capability) &&
         std::ranges::find(sass::kArchitectures, architecture) != sass::kArchitectures.end();
}

LoadedProgram LoadCubin(std::string cubin, Device& device) {
  auto source = CubinSource::Open(std::move(cubin));
  if (!source.ok()) return source.failure();
  const unsigned architecture = (*source)->architecture();
  const unsigned compute_capability = device.spec().compute_capability;
  if (!Runs(architecture, compute_capability)) {
    return Failure<CUresult>{CUDA_ERROR_NO_BINARY_FOR_GPU,
                             NoCodeText("the module is a cubin, which holds no PTX; load PTX",
                                        {&architecture, 1}, compute_capability)};
  }
  return ToLoaded(Program::Load(std::move(source).value(), device, device.traits()));
}

LoadedProgram LoadFatbin(const void* data, Device& device) {
  const std::span image(static_cast<const std::byte*>(data), FatbinSize(data));
  if (image.empty()) return Failure<CUresult>{CUDA_ERROR_INVALID_IMAGE, "not a fatbin container"};
  const unsigned compute_capability = device.spec().compute_capability;
  const auto ptx = SelectPtx(image, compute_capability);
  if (ptx.ok()) return ToLoaded(Program::Load(*ptx, device, device.traits()));
  if (ptx.failure().code != FatbinError::kNoPtx) return ToDriverFailure(ptx.failure());
  auto cubin = SelectCubin(image, compute_capability, sass::kArchitectures);
  if (cubin.ok()) return LoadCubin(std::move(cubin).value(), device);
  if (cubin.failure().code != FatbinError::kNoCode) return ToDriverFailure(cubin.failure());
  const auto held = CubinArchitectures(image);
  if (held.empty()) return ToDriverFailure(ptx.failure());
  return Failure<CUresult>{CUDA_ERROR_NO_BINARY_FOR_GPU,
                           NoCodeText(ptx.failure().message, held, compute_capability)};
}

std::uint32_t MagicOf(const void* image) {
  std::uint32_t magic = 0;
  // Text may be shorter than the magic, but NUL ends it.
  std::memcpy(&magic, image, strnlen(static_cast<const char*>(image), sizeof(magic)));
  return magic;
}

LoadedProgram LoadLinked(const void* image, Device& device) {
  const auto parts = DecodeLinkedImage(image);
  if (parts) return ToLoaded(Program::Load(*parts, device, device.traits()));
  return Failure<CUresult>{CUDA_ERROR_INVALID_PTX, "a linked image that is damaged"};
}

LoadedProgram LoadProgram(const void* image, Device& device) {
  const std::uint32_t magic = MagicOf(image);
  if (magic == kLinkedImageMagic) return LoadLinked(image, device);
  if (magic == kFatbinMagic) return LoadFatbin(image, device);
  if (magic == kFatbinWrapperMagic) {
    return LoadFatbin(static_cast<const FatbinWrapper*>(image)->data, device);
  }
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) {
    return LoadCubin({static_cast<const char*>(image), ElfFileBytes(image)}, device);
  }
  return ToLoaded(
      Program::Load(std::string_view(static_cast<const char*>(image)), device, device.traits()));
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
