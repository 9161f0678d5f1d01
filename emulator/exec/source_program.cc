#include "emulator/exec/source_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "emulator/ptx/parser.h"

namespace torpor::emulator {
SourceProgram::Translation::Translation(ptx::Module parsed) : module(std::move(parsed)) {}

SourceProgram::SourceProgram(std::shared_ptr<const KernelSource> source, DeviceMemory& memory,
                             const DeviceTraits& traits)
    : KernelProgram(memory, traits), source_(std::move(source)), slots_(source_->kernels().size()) {
  const auto& kernels = source_->kernels();
  for (std::size_t i = 0; i < kernels.size(); ++i) indices_.emplace(kernels[i].name, i);
}

ExecResult<void> SourceProgram::PlaceMemories() {
  std::vector<Piece> pieces;
  pieces.reserve(source_->memories().size());
  for (const KernelSource::Memory& memory : source_->memories()) {
    pieces.push_back({memory.size, memory.align});
  }
  auto placed = Place(pieces);
  if (!placed) return placed.failure();
  addresses_ = std::move(*placed);
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    InitialiseMemory(source_->memories()[i], addresses_[i]);
  }
  for (const KernelSource::Variable& variable : source_->variables()) {
    AddVariable({variable.name, addresses_[variable.memory] + variable.offset, variable.size,
                 source_->memories()[variable.memory].constant});
  }
  return {};
}

void SourceProgram::InitialiseMemory(const KernelSource::Memory& memory, std::uint64_t address) {
  auto* const bytes = reinterpret_cast<std::byte*>(address);
  std::ranges::copy(memory.initial, bytes);
  for (const KernelSource::LaneAddress& word : memory.addresses) {
    const std::uint64_t value = addresses_[word.memory] + word.addend;
    std::memcpy(bytes + word.offset, &value, sizeof value);
  }
}

const KernelInfo* SourceProgram::FindKernel(std::string_view name) const {
  const auto found = indices_.find(name);
  return found == indices_.end() ? nullptr : &source_->kernels()[found->second];
}

ExecResult<KernelProgram::Runnable> SourceProgram::Find(std::string_view name) {
  const auto found = indices_.find(name);
  if (found == indices_.end()) return NoKernel(name);
  const auto translation = TranslationOf(found->second);
  if (!translation) return translation.failure();
  return Runnable{(*translation)->kernel.get(), (*translation)->symbols.data()};
}

// Once a translation is ready, launches read the pointer without a lock.
ExecResult<SourceProgram::Translation*> SourceProgram::TranslationOf(std::size_t index) {
  Slot& slot = slots_[index];
  if (Translation* const ready = slot.ready.load(std::memory_order_acquire)) return ready;
  const std::lock_guard lock(slot.making);
  if (slot.made == nullptr) {
    auto made = Translate(index);
    if (!made) return made.failure();
    slot.made = std::move(*made);
    slot.ready.store(slot.made.get(), std::memory_order_release);
  }
  return slot.made.get();
}

ExecResult<std::unique_ptr<SourceProgram::Translation>> SourceProgram::Translate(
    std::size_t index) const {
  const auto ptx = source_->KernelPtx(index);
  if (!ptx) return ptx.failure();
  const std::string& name = source_->kernels()[index].name;
  auto parsed = ptx::Parse(*ptx);
  if (!parsed) {
    return Failure<ExecError>{ExecError::kInvalidPtx,
                              "kernel " + name + ": " + parsed.failure().message};
  }
  auto translation = std::make_unique<Translation>(std::move(*parsed));
  const ptx::Module& module = translation->module;
  const std::uint32_t function = module.FindFunction(name);
  const bool is_as_told =
      function != ptx::kNoIndex && module.functions[function].is_kernel &&
      module.functions[function].has_body &&
      module.functions[function].parameter_bytes == source_->kernels()[index].parameter_bytes;
  if (!is_as_told) {
    return Failure<ExecError>{ExecError::kInvalidPtx, "kernel " + name + ": its PTX is of another"};
  }
  for (const ptx::Variable& variable : module.variables) {
    translation->symbols.push_back(AddressOf(variable));
  }
  translation->kernel =
      std::make_unique<Kernel>(module, function, ToHex(Sha256(ptx->data(), ptx->size())));
  return translation;
}

std::uint64_t SourceProgram::AddressOf(const ptx::Variable& variable) const {
  const auto& memories = source_->memories();
  const auto found = std::ranges::find(memories, variable.name, &KernelSource::Memory::name);
  return found == memories.end() ? 0
                                 : addresses_[static_cast<std::size_t>(found - memories.begin())];
}

}  // namespace torpor::emulator
