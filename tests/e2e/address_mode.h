#pragma once

#include <cstdlib>
#include <string_view>

namespace torpor::e2e {

// Whether the daemons of this run have address_mode: translate: CTest runs suites in either mode,
// by the variable that torpord itself reads. A test that is about what only the other can do skips
// itself and says why.
inline bool IsTranslating() {
  const char* const mode = std::getenv("TORPOR_ADDRESS_MODE");
  return mode != nullptr && std::string_view(mode) == "translate";
}

inline constexpr const char* kPointersInMemory =
    "keeps pointers in device memory, which address_mode: translate cannot translate";
inline constexpr const char* kPeers = "reaches another GPU's memory, which needs address_mode: map";

}  // namespace torpor::e2e
