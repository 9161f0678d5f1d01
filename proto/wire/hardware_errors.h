#pragma once

#include <cstdint>

namespace torpor::wire {

// Whether an error of CUDA (cudaError_t) tells of hardware that has failed, whatever the program
// did: uncorrectable errors of memory (ECC) and of NVLinks. The same work can be done elsewhere.
constexpr bool IsHardwareError(std::int32_t cuda_error) {
  constexpr std::int32_t kEccUncorrectable = 214;
  constexpr std::int32_t kNvlinkUncorrectable = 220;
  return cuda_error == kEccUncorrectable || cuda_error == kNvlinkUncorrectable;
}

}  // namespace torpor::wire
