#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"

namespace torpor::memory {

// An event in the life of a GPU's memory. As text, a line each (docs/memory.md):
//
//   load F            request for function F: all blocks of F get places
//   evict F           all blocks of F lose their places
//   alloc F B BYTES   loaded function F gets a block B, with a place
//   free F B          block B of F is freed
//   idle              no request waits: blocks may be moved
struct TraceEvent {
  enum class Kind { kLoad, kEvict, kAllocate, kFree, kIdle };

  Kind kind = Kind::kIdle;
  std::uint32_t function = 0;
  std::uint32_t block = 0;
  Bytes bytes = 0;
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

using AllocationTrace = std::vector<TraceEvent>;

// Maximum size of a block in a trace.
inline constexpr Bytes kMaxTraceBlockBytes = Bytes{1} << 48;

// Reads a trace; `name` is the file's, for messages. InvalidArgument names the first line that is
// malformed or cannot happen, such as a block allocated twice or for a function that is not loaded.
absl::StatusOr<AllocationTrace> ParseTrace(std::string_view text, std::string_view name);

// Writes a trace as text for ParseTrace.
std::string FormatTrace(const AllocationTrace& trace);

}  // namespace torpor::memory
