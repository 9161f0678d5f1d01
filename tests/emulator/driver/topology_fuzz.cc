#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/driver/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)torpor::emulator::ParseTopology(text, "fuzz");
  (void)torpor::emulator::ParseBytes(text);
  return 0;
}
