#include "emulator/driver/module/load_program.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/driver/base/exec_error.h"
#include "emulator/driver/module/cubin_source.h"
#include "emulator/driver/module/linked_module.h"
#include "emulator/sass/cubin.h"
#include "nvidia/elf_file.h"
#include "nvidia/fatbin.h"

namespace torpor::emulator {
namespace {

std::string CapabilityText(unsigned compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

// Explains why a module of machine code cannot run here, and which topology would run it. `no_ptx`
// says why there is no PTX.
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

// Whether a device of this capability runs machine code that the emulator translates.
bool Runs(unsigned architecture, unsigned compute_capability) {
  return RunsMachineCode(architecture, compute_capability) &&
         std::ranges::find(sass::kArchitectures, architecture) != sass::kArchitectures.end();
}

LoadedProgram LoadCubin(std::string cubin, DriverDevice& device) {
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

LoadedProgram LoadFatbin(const void* data, DriverDevice& device) {
  const std::span module(static_cast<const std::byte*>(data), FatbinSize(data));
  if (module.empty()) return Failure<CUresult>{CUDA_ERROR_INVALID_IMAGE, "not a fatbin container"};
  const unsigned compute_capability = device.spec().compute_capability;
  const auto ptx = SelectPtx(module, compute_capability);
  if (ptx.ok()) return ToLoaded(Program::Load(*ptx, device, device.traits()));
  if (ptx.failure().code != FatbinError::kNoPtx) return ToDriverFailure(ptx.failure());
  auto cubin = SelectCubin(module, compute_capability, sass::kArchitectures);
  if (cubin.ok()) return LoadCubin(std::move(cubin).value(), device);
  if (cubin.failure().code != FatbinError::kNoCode) return ToDriverFailure(cubin.failure());
  const auto held = CubinArchitectures(module);
  if (held.empty()) return ToDriverFailure(ptx.failure());
  return Failure<CUresult>{CUDA_ERROR_NO_BINARY_FOR_GPU,
                           NoCodeText(ptx.failure().message, held, compute_capability)};
}

std::uint32_t MagicOf(const void* module) {
  std::uint32_t magic = 0;
  // PTX text may be shorter than the magic, but ends with NUL.
  std::memcpy(&magic, module, strnlen(static_cast<const char*>(module), sizeof(magic)));
  return magic;
}

LoadedProgram LoadLinked(const void* module, DriverDevice& device) {
  const auto parts = DecodeLinkedModule(module);
  if (parts) return ToLoaded(Program::Load(*parts, device, device.traits()));
  return Failure<CUresult>{CUDA_ERROR_INVALID_PTX, "a linked module that is damaged"};
}

}  // namespace

DriverResult<std::unique_ptr<Program>> LoadProgram(const void* module, DriverDevice& device) {
  const std::uint32_t magic = MagicOf(module);
  if (magic == kLinkedModuleMagic) return LoadLinked(module, device);
  if (magic == kFatbinMagic) return LoadFatbin(module, device);
  if (magic == kFatbinWrapperMagic) {
    return LoadFatbin(static_cast<const FatbinWrapper*>(module)->data, device);
  }
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) {
    return LoadCubin({static_cast<const char*>(module), ElfFileBytes(module)}, device);
  }
  return ToLoaded(
      Program::Load(std::string_view(static_cast<const char*>(module)), device, device.traits()));
}

Bytes ModuleBytes(const void* module) {
  const std::uint32_t magic = MagicOf(module);
  if (magic == kLinkedModuleMagic) return LinkedModuleBytes(module);
  if (magic == kFatbinMagic) return FatbinSize(module);
  if (magic == kFatbinWrapperMagic) {
    return FatbinSize(static_cast<const FatbinWrapper*>(module)->data);
  }
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return ElfFileBytes(module);
  return std::strlen(static_cast<const char*>(module));
}

}  // namespace torpor::emulator
