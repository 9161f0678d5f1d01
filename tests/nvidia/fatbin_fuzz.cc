#include <cstddef>
#include <cstdint>
#include <span>

#include "nvidia/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = torpor::ReadFatbin(std::as_bytes(std::span<const std::uint8_t>(data, size)));
  if (!entries.ok()) return 0;
  for (const auto& entry : *entries) {
    // A claim of a gigabyte is legal, and slow to try.
    if (entry.uncompressed_size < (1U << 20)) (void)torpor::DecodePtx(entry);
  }
  return 0;
}
