#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"

namespace torpor::memory {

// What happens to a GPU's memory, in order. As text, a line each (docs/memory.md):
//
//   load F            a request for function F: its blocks without a place get one
//   evict F           all blocks of F lose their places
//   alloc F B BYTES   F, which is loaded, gets a block B, with a place
//   free F B          block B of F is gone
//   idle              nobody waits: blocks may be moved
struct TraceEvent {
  enum class Kind { kLoad, kEvict, kAllocate, kFree, kIdle };

  Kind kind = Kind::kIdle;
  std::uint32_t function = 0;
  std::uint32_t block = 0;
  Bytes bytes = 0;
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

using AllocationTrace = std::vector<TraceEvent>;

// The largest block that a trace may have.
inline constexpr Bytes kMaxTraceBlockBytes = Bytes{1} << 48;

// Reads a trace; `name` is the file's, for messages. InvalidArgument says which line is not of the
// format or cannot happen: a block allocated twice or of a function that is not loaded, and so on.
absl::StatusOr<AllocationTrace> ParseTrace(std::string_view text, std::string_view name);

// The text that ParseTrace reads.
std::string FormatTrace(const AllocationTrace& trace);

}  // namespace torpor::memory
