#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/exec/kernel.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// The common part of all programs, whatever the source of the kernels: memory for variables, and
// launches. Thread-safe after Place.
class KernelProgram : public Program {
 public:
  const std::vector<GlobalVariable>& variables() const override { return variables_; }
  ExecResult<void> Preload(std::string_view kernel, const Dim3& block) override;
  ExecResult<void> Launch(std::string_view kernel, const LaunchConfig& config) override;

 protected:
  // A kernel ready for compilation, and the addresses of the variables of the kernel's module, by
  // index.
  struct Runnable {
    Kernel* kernel = nullptr;
    const std::uint64_t* symbols = nullptr;
  };

  // A piece of memory for variables.
  struct Piece {
    Bytes size = 0;
    Bytes align = 1;  // a power of two
  };

  KernelProgram(DeviceMemory& memory, const DeviceTraits& traits)
      : memory_(memory), traits_(traits) {}
  ~KernelProgram() override;

  virtual ExecResult<Runnable> Find(std::string_view name) = 0;
  static Failure<ExecError> NoKernel(std::string_view name);

  // Allocates zeroed memory and returns the addresses of `pieces`. Call at most once, before any
  // other function.
  ExecResult<std::vector<std::uint64_t>> Place(std::span<const Piece> pieces);
  void AddVariable(GlobalVariable variable) { variables_.push_back(std::move(variable)); }

 private:
  DeviceMemory& memory_;
  const DeviceTraits traits_;
  std::uint64_t allocation_ = 0;
  std::vector<GlobalVariable> variables_;
};

}  // namespace torpor::emulator
