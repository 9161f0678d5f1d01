#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::shim {

// The most parameter bytes of a kernel (sm_70 and later).
inline constexpr std::size_t kMaxParameterBytes = 32764;

// Parameters of a kernel that a program has packed by itself.
struct PackedArguments {
  const std::uint8_t* bytes = nullptr;
  std::size_t count = 0;
};

// Reads a launch's `extra`, a list of tags and values (CU_LAUNCH_PARAM_...). False: a tag is
// unknown, or no kernel takes as much.
bool ReadPackedArguments(void* const* extra, PackedArguments& packed);

}  // namespace torpor::shim
