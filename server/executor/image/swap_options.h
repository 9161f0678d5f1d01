#pragma once

#include "base/units.h"

namespace torpor::executor {

// How much of a swap-in must be there before the function's work may begin.
enum class SwapPipeline {
  kNone,       // all of it
  kParameter,  // the allocations that the work uses, each copied and waited for by itself
  kGroup,      // the same, but copied in groups of about group_bytes
};

// What of an allocation that a kernel has a pointer into must be there before the kernel runs.
enum class SwapWait {
  kAllocation,  // all of it, since a pointer does not bound what is read
  kRange,       // the group in which the pointer points: the paper's rule, which trusts the kernel
};

// Groups are no smaller.
inline constexpr Bytes kLeastGroupBytes = 64 * kKiB;

struct SwapOptions {
  bool pinned = true;  // images are registered with the driver
  SwapPipeline pipeline = SwapPipeline::kGroup;
  Bytes group_bytes = 2 * kMiB;
  SwapWait wait = SwapWait::kAllocation;
};

}  // namespace torpor::executor
