#include "emulator/driver/module/cubin_source.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "emulator/sass/kernel_ptx.h"
#include "emulator/sass/lift.h"

namespace torpor::emulator {
namespace {

// Describes a kernel as the driver reports kernels.
KernelInfo InfoOf(const sass::Cubin& cubin, const sass::CubinKernel& kernel) {
  KernelInfo info;
  info.name = kernel.name;
  info.parameters.reserve(kernel.parameters.size());
  for (const sass::Parameter& parameter : kernel.parameters) {
    info.parameters.push_back({parameter.offset, parameter.bytes});
  }
  info.parameter_bytes = kernel.parameter_bytes;
  info.static_shared_bytes = kernel.shared_bytes;
  info.local_bytes = kernel.local_bytes;
  if (const sass::Memory* const constants = cubin.Bank(3)) info.constant_bytes = constants->bytes;
  if (kernel.max_threads != 0) {
    info.max_threads_per_block = std::min(kernel.max_threads, kMaxThreadsPerBlock);
  }
  info.registers = std::max(kernel.registers, 1U);
  info.ptx_version = cubin.architecture;
  info.prints = std::ranges::find(cubin.externals, "vprintf") != cubin.externals.end();
  info.allocates = std::ranges::find(cubin.externals, "malloc") != cubin.externals.end();
  return info;
}

// The address by which the PTX refers to the relocated function.
std::uint64_t CodeAddress(const sass::Cubin& cubin, const sass::CubinRelocation& relocation) {
  return relocation.external != sass::kNoIndex
             ? sass::ExternalAddress(relocation.external)
             : cubin.texts[relocation.text].code_address + relocation.addend;
}

DriverResult<sass::Cubin> ReadCode(const std::string& code) {
  auto cubin = sass::ReadCubin(std::as_bytes(std::span(code)));
  if (cubin) return std::move(cubin).value();
  const bool malformed = cubin.failure().code == sass::CubinError::kMalformed;
  return Failure<CUresult>{malformed ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU,
                           cubin.failure().message};
}

}  // namespace

DriverResult<std::shared_ptr<const CubinSource>> CubinSource::Open(std::string code) {
  const std::shared_ptr<CubinSource> source(new CubinSource);
  source->code_ = std::move(code);
  auto cubin = ReadCode(source->code_);
  if (!cubin) return cubin.failure();
  source->cubin_ = std::move(cubin).value();
  source->AddMemories();
  source->AddVariables();
  source->AddKernels();
  return std::shared_ptr<const CubinSource>(source);
}

// Addresses of memories stay relocations, resolved when the program is loaded; addresses of code
// are known and written at once.
void CubinSource::AddMemories() {
  for (std::uint32_t i = 0; i < cubin_.memories.size(); ++i) {
    const sass::Memory& section = cubin_.memories[i];
    Memory& memory = memories_.emplace_back();
    memory.name = sass::MemoryName(i);
    memory.size = section.bytes;
    memory.align = section.align;
    memory.constant = section.kind == sass::Memory::Kind::kConstant;
    memory.initial.assign(section.initial.begin(), section.initial.end());
    for (const sass::CubinRelocation& relocation : section.relocations) {
      if (relocation.memory != sass::kNoIndex) {
        memory.addresses.push_back({relocation.offset, relocation.memory, relocation.addend});
        continue;
      }
      const std::uint64_t value = CodeAddress(cubin_, relocation);
      std::memcpy(memory.initial.data() + relocation.offset, &value, sizeof value);
    }
  }
}

void CubinSource::AddVariables() {
  variables_.reserve(cubin_.variables.size());
  for (const sass::CubinVariable& variable : cubin_.variables) {
    variables_.push_back(
        {std::string(variable.name), variable.memory, variable.offset, variable.bytes});
  }
}

void CubinSource::AddKernels() {
  kernels_.reserve(cubin_.kernels.size());
  for (const sass::CubinKernel& kernel : cubin_.kernels) kernels_.push_back(InfoOf(cubin_, kernel));
}

// Translates one kernel; fails with the instruction that is not supported.
ExecResult<std::string> CubinSource::KernelPtx(std::size_t index) const {
  const sass::CubinKernel& kernel = cubin_.kernels[index];
  const auto body = sass::LiftKernel(cubin_, kernel);
  if (body) return sass::KernelPtx(cubin_, kernel, *body);
  const bool unsupported = body.failure().code == sass::LiftError::kUnsupported;
  return Failure<ExecError>{unsupported ? ExecError::kUnsupported : ExecError::kInvalidPtx,
                            body.failure().message};
}

}  // namespace torpor::emulator
