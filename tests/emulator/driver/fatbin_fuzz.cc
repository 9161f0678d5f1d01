#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/driver/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries =
      torpor::emulator::ReadFatbin(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (!entries.ok()) return 0;
  for (const auto& entry : *entries) {
    // A claim of a gigabyte is legal, and slow to try.
    if (entry.uncompressed_size < (1U << 20)) (void)torpor::emulator::DecodePtx(entry);
  }
  return 0;
}
