#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/exec/runtime/block_runner.h"

namespace torpor::emulator {

// Whether generic addresses of `warp` may reach [address, address + bytes): device memory (pages
// without an allocation fault), the arena, or registered host memory.
bool MayAccess(const Warp& warp, std::uint64_t address, std::uint64_t bytes);

// Reads memory at addresses given by a kernel, under the rules of the kernel's own accesses. The
// runtime reads kernel addresses through this class only. Not thread-safe.
class DeviceReader {
 public:
  // `warp` runs on the calling thread and must outlive the reader.
  explicit DeviceReader(const Warp& warp) : warp_(warp) {}

  // Returns false, with `to` unspecified, if the kernel may not read the range.
  bool Read(void* to, std::uint64_t address, std::size_t bytes) const;
  // Reads a NUL-terminated string, or the first `limit` characters. Returns false if the kernel may
  // not read the string.
  bool ReadText(std::string& text, std::uint64_t address, std::size_t limit) const;

 private:
  const Warp& warp_;
};

}  // namespace torpor::emulator
