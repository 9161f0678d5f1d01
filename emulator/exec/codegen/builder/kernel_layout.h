#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/ptx/module.h"

namespace torpor::emulator {

inline constexpr std::uint32_t kSharedAlignment = 256;
inline constexpr std::uint32_t kDynamicSharedAlignment = 16;  // at least

// Where a kernel's memory lies; the same for all variants of the kernel.
struct KernelLayout {
  std::map<std::uint32_t, std::uint32_t> shared_offsets;  // variable -> offset in shared memory
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_offset = 0;               // behind the static part, padded
  std::uint32_t shared_alignment = kSharedAlignment;     // of where shared memory begins
  bool reserved_shared = false;                          // whether the system's part of it is used
  std::map<std::uint32_t, std::uint32_t> local_offsets;  // variable -> offset in its frame
  std::map<std::uint32_t, std::uint32_t> local_bytes;    // function -> bytes a lane
  bool dynamic_stack = false;                            // whether frames grow by more than that
  // Whether a waiting warp returns from the kernel's code (see KernelEntry). False if functions
  // other than the kernel may wait, or if the state of a warp is large; then each waiting warp
  // keeps a separate stack.
  bool resumable = false;
  std::vector<std::uint32_t> functions;      // reachable, the kernel first
  std::vector<std::uint32_t> address_taken;  // functions that may be called indirectly
};

KernelLayout LayOutKernel(const ptx::Module& module, std::uint32_t kernel);

// Function pointers are made-up addresses, distinct from all allocations.
inline constexpr std::uint64_t kFunctionAddressBase = 0x10;
constexpr std::uint64_t FunctionAddress(std::uint32_t function) {
  return kFunctionAddressBase + std::uint64_t{16} * function;
}

}  // namespace torpor::emulator
