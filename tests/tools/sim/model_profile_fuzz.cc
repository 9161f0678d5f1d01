#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/sim/model_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)torpor::sim::ParseProfiles(text, "fuzz");
  return 0;
}
