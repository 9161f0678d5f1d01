#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/driver/module/linked_module.h"

// The size in the header is the caller's to keep; all else may lie.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHeaderBytes = 16;
  if (size < kHeaderBytes) return 0;
  std::vector<std::uint8_t> module(data, data + size);
  const std::uint64_t bytes = size - kHeaderBytes;
  std::memcpy(module.data(), &torpor::emulator::kLinkedModuleMagic, 4);
  std::memcpy(module.data() + 8, &bytes, sizeof bytes);
  (void)torpor::emulator::DecodeLinkedModule(module.data());
  return 0;
}
