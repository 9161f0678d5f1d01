#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::shim {

// The maximum of a kernel's parameter bytes (sm_70 and later).
inline constexpr std::size_t kMaxParameterBytes = 32764;

// A kernel's parameters, packed by the program. Refers to the program's memory.
struct PackedArguments {
  const std::uint8_t* bytes = nullptr;
  std::size_t count = 0;
};

// Reads a launch's `extra`, a list of tags and values (CU_LAUNCH_PARAM_...). Returns false for an
// unknown tag or more than kMaxParameterBytes.
bool ReadPackedArguments(void* const* extra, PackedArguments& packed);

}  // namespace torpor::shim
