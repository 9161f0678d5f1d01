#pragma once

#include <array>
#include <cstdint>

namespace torpor::wire {

// A scalar of a cuBLAS call: by value (host pointer mode), or the device address where it is.
struct CublasScalar {
  std::uint64_t address = 0;  // 0: by value
  std::array<std::uint8_t, 16> value{};

  template <typename V>
  void Visit(V& v) {
    v(address), v(value);
  }
};

}  // namespace torpor::wire
