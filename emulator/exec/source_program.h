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
#include "emulator/exec/kernel_program.h"
#include "emulator/exec/kernel_source.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// A program of kernels in another format than PTX (see KernelSource). Thread-safe after
// PlaceMemories.
class SourceProgram : public KernelProgram {
 public:
  SourceProgram(std::shared_ptr<const KernelSource> source, DeviceMemory& memory,
                const DeviceTraits& traits);

  // Allocates and initialises the source's memories. Call once, before any other function.
  ExecResult<void> PlaceMemories();

  std::vector<KernelInfo> kernels() const override { return source_->kernels(); }
  const KernelInfo* FindKernel(std::string_view name) const override;

 private:
  // A kernel translated to PTX and parsed.
  struct Translation {
    explicit Translation(ptx::Module module);

    const ptx::Module module;
    std::vector<std::uint64_t> symbols;  // variable of `module` -> address; 0 if it has none
    std::unique_ptr<Kernel> kernel;
  };

  // Place of a kernel's translation. Launches of other kernels do not wait during a translation.
  struct Slot {
    std::mutex making;
    std::unique_ptr<Translation> made;          // guarded by `making`
    std::atomic<Translation*> ready = nullptr;  // once it is made
  };

  void InitialiseMemory(const KernelSource::Memory& memory, std::uint64_t address);
  ExecResult<Runnable> Find(std::string_view name) override;
  ExecResult<Translation*> TranslationOf(std::size_t index);
  ExecResult<std::unique_ptr<Translation>> Translate(std::size_t index) const;
  std::uint64_t AddressOf(const ptx::Variable& variable) const;

  const std::shared_ptr<const KernelSource> source_;
  std::vector<std::uint64_t> addresses_;             // of the source's memories
  std::map<std::string_view, std::size_t> indices_;  // name -> of the source's kernels
  std::vector<Slot> slots_;                          // one for each of the source's kernels
};

}  // namespace torpor::emulator
