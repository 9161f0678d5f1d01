#include "server/executor/runtime/kernel_parameters.h"

#include <cstring>

namespace torpor::executor {

void KernelParameters::NoteUse(const SessionKernel& kernel,
                               std::span<const std::uint8_t> parameters) const {
  memory_.UseParameters(parameters);
  if (!memory_.image().arrival().is_pending()) return;
  // A variable, of this module or of another to which there is a pointer, may hold addresses; and a
  // texture's value looks like any number.
  const bool reads_more =
      kernel.reads_variables || !textures_.empty() || modules_.PointToVariable(parameters);
  if (reads_more) memory_.image().touches().UseAll();
}

std::uint64_t KernelParameters::TranslatedWord(std::uint64_t word) const {
  const std::uint64_t known_here =
      has_moved_objects() ? textures_.Translate(modules_.Translate(word)) : word;
  return memory_.is_translating() && known_here == word ? memory_.Translate(word) : known_here;
}

std::uint8_t* KernelParameters::Translate(const std::vector<wire::KernelParameter>& layout,
                                          std::span<const std::uint8_t> parameters) {
  translated_.assign(wire::Padded(parameters.size()) / sizeof(std::uint64_t), 0);
  if (!parameters.empty()) {
    std::memcpy(translated_.data(), parameters.data(), parameters.size());
  }
  if (memory_.is_translating()) memory_.RefreshAddresses();
  // Pointers and objects are aligned to their size, inside structures too. Two parameters of four
  // bytes are never a pointer, whatever address both spell together.
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (const wire::KernelParameter& parameter : layout) {
    const std::size_t end = std::size_t{parameter.offset} + parameter.bytes;
    for (std::size_t i = wire::Padded(parameter.offset) / kWord; (i + 1) * kWord <= end; ++i) {
      translated_[i] = TranslatedWord(translated_[i]);
    }
  }
  return reinterpret_cast<std::uint8_t*>(translated_.data());
}

}  // namespace torpor::executor
