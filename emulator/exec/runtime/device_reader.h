#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/exec/runtime/block_runner.h"

namespace torpor::emulator {

// Whether generic addresses of this warp may reach [address, address + bytes): device memory,
// where what is not backed faults, the arena, or memory that the host has registered.
bool MayAccess(const Warp& warp, std::uint64_t address, std::uint64_t bytes);

// Copies memory out by addresses that a kernel gave to the runtime, under the rules of the
// kernel's own accesses. Nothing that an address names is touched but through here.
class DeviceReader {
 public:
  // `warp` runs on the calling thread, and outlives this.
  explicit DeviceReader(const Warp& warp) : warp_(warp) {}

  // False, and nothing said of what `to` holds, where the kernel may not read.
  bool Read(void* to, std::uint64_t address, std::size_t bytes) const;
  // A string that NUL ends, or its first `limit` characters. False where the kernel may not read.
  bool ReadText(std::string& text, std::uint64_t address, std::size_t limit) const;

 private:
  const Warp& warp_;
};

}  // namespace torpor::emulator
