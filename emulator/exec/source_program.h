#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/exec/kernel.h"
#include "emulator/exec/kernel_source.h"
#include "emulator/exec/program.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// A program of kernels that are not PTX yet.
class SourceProgram : public Program {
 public:
  SourceProgram(std::shared_ptr<const KernelSource> source, DeviceMemory& memory,
                const DeviceTraits& traits);
  ~SourceProgram() override;

  // Once, before all else.
  ExecResult<void> PlaceMemories();

  std::vector<KernelInfo> kernels() const override { return source_->kernels(); }
  const KernelInfo* FindKernel(std::string_view name) const override;
  const std::vector<GlobalVariable>& variables() const override { return variables_; }
  ExecResult<void> Preload(std::string_view kernel, const Dim3& block) override;
  ExecResult<void> Launch(std::string_view kernel, const LaunchConfig& config) override;

 private:
  // A kernel as PTX.
  struct Translation {
    explicit Translation(ptx::Module module);

    const ptx::Module module;
    std::vector<std::uint64_t> symbols;  // variable of `module` -> address; 0 if it has none
    std::unique_ptr<Kernel> kernel;
  };

  // Where a kernel's is. Others' launches do not wait while it is made.
  struct Slot {
    std::mutex making;
    std::unique_ptr<Translation> made;          // guarded by `making`
    std::atomic<Translation*> ready = nullptr;  // once it is made
  };

  void InitialiseMemory(const KernelSource::Memory& memory, std::uint64_t address);
  ExecResult<Translation*> Find(std::string_view name);
  ExecResult<std::unique_ptr<Translation>> Translate(std::size_t index) const;
  std::uint64_t AddressOf(const ptx::Variable& variable) const;

  const std::shared_ptr<const KernelSource> source_;
  DeviceMemory& memory_;
  const DeviceTraits traits_;
  std::uint64_t allocation_ = 0;
  std::vector<std::uint64_t> addresses_;  // of the source's memories
  std::vector<GlobalVariable> variables_;
  std::map<std::string_view, std::size_t> indices_;  // name -> of the source's kernels
  std::vector<Slot> slots_;                          // one for each of the source's kernels
};

}  // namespace torpor::emulator
