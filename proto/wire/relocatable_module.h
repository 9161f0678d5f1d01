#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/wire/codec.h"

namespace torpor::wire {

// A module of relocatable device code (nvcc -rdc=true). Named, sent and stored in this form, as
// other modules are as fatbins. The spans borrow.
struct RelocatableModule {
  static constexpr std::uint64_t kMagic = 0x4344'524f'5052'4f54;  // "TORPORDC"

  std::uint64_t magic = kMagic;
  std::span<const std::uint8_t> linked;              // a fatbin of machine code, maybe empty
  std::vector<std::span<const std::uint8_t>> parts;  // fatbins to be linked

  template <typename V>
  void Visit(V& v) {
    v(magic);
    v(linked);
    v(parts);
  }
};

}  // namespace torpor::wire
