#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace torpor::wire {

// Numbers that a cuBLAS call reads by value (host pointer mode) or from a device address, after the
// pointer mode.
template <std::size_t kBytes>
struct CublasNumbers {
  std::uint64_t address = 0;  // 0: by value
  std::array<std::uint8_t, kBytes> value{};

  template <typename V>
  void Visit(V& v) {
    v(address), v(value);
  }
};
using CublasScalar = CublasNumbers<16>;
using CublasRotation = CublasNumbers<40>;  // rotm's parameters

}  // namespace torpor::wire
