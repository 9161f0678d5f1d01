#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/session_textures.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Reads the packed parameters of kernels: which of the session's memory they name, and where that
// memory, variables, textures and surfaces are on this GPU. Not thread-safe; call on the thread
// that executes the session's calls.
class KernelParameters {
 public:
  // All must outlive this.
  KernelParameters(SessionMemory& memory, const SessionModules& modules,
                   const SessionTextures& textures)
      : memory_(memory), modules_(modules), textures_(textures) {}

  // Announces to a swap-in under way the memory that the next launch uses.
  void NoteUse(const SessionKernel& kernel, std::span<const std::uint8_t> parameters) const;

  // Returns the parameters as this GPU is to have them: `parameters` itself if all numbers mean the
  // same here, else a translated copy, which is valid until the next call. The driver only reads
  // the result.
  std::uint8_t* OnThisGpu(const std::vector<wire::KernelParameter>& layout,
                          std::span<const std::uint8_t> parameters) {
    if (!memory_.is_translating() && !has_moved_objects()) {
      return const_cast<std::uint8_t*>(parameters.data());
    }
    return Translate(layout, parameters);
  }

 private:
  // Whether the client knows variables, textures or surfaces by other numbers than this GPU's.
  bool has_moved_objects() const { return modules_.has_moved() || textures_.has_moved(); }
  std::uint8_t* Translate(const std::vector<wire::KernelParameter>& layout,
                          std::span<const std::uint8_t> parameters);
  std::uint64_t TranslatedWord(std::uint64_t word) const;

  SessionMemory& memory_;
  const SessionModules& modules_;
  const SessionTextures& textures_;
  std::vector<std::uint64_t> translated_;
};

}  // namespace torpor::executor
