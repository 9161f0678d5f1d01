#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/units.h"
#include "memory/arena_allocator.h"
#include "memory/trace/allocation_trace.h"

namespace torpor::memory {

// The memory over which a trace is replayed.
class ReplayTarget {
 public:
  virtual ~ReplayTarget() = default;

  // Returns the address of a new block, or nullopt if there is no room.
  virtual std::optional<std::uint64_t> Allocate(std::uint32_t function, Bytes bytes) = 0;
  virtual void Free(std::uint64_t address) = 0;

  struct Moved {
    std::uint64_t moves = 0;
    Bytes bytes = 0;
  };
  // No request waits: moves at most `max_bytes` and calls `moved` for every moved block.
  virtual Moved Idle(Bytes max_bytes,
                     const std::function<void(std::uint64_t from, std::uint64_t to)>& moved) = 0;
  // Bytes that are free but in pieces, and the size of the memory; both 0 if unknown.
  virtual Bytes fragmented() const = 0;
  virtual Bytes capacity() const = 0;
};

// Replays over an arena; moves are done at once.
class ArenaTarget final : public ReplayTarget {
 public:
  // `knows_free`: whether the arena itself, not only its source, knows the free memory.
  explicit ArenaTarget(ArenaAllocator& arena, bool knows_free = true)
      : arena_(arena), knows_free_(knows_free) {}

  std::optional<std::uint64_t> Allocate(std::uint32_t function, Bytes bytes) override;
  void Free(std::uint64_t address) override { arena_.Free(address); }
  Moved Idle(Bytes max_bytes,
             const std::function<void(std::uint64_t, std::uint64_t)>& moved) override;
  Bytes fragmented() const override { return knows_free_ ? arena_.use().fragmented() : 0; }
  Bytes capacity() const override { return knows_free_ ? arena_.use().capacity : 0; }

 private:
  // Minimum alignment of drivers.
  static constexpr Bytes kAlignment = 512;

  ArenaAllocator& arena_;
  const bool knows_free_;
};

// The blocks that one request brought into memory together.
struct ReplayedLoad {
  std::uint32_t function = 0;
  std::uint64_t nanoseconds = 0;  // of all allocations, with forced evictions
};

struct ReplayReport {
  std::vector<std::uint64_t> allocation_ns;  // of each allocation, without evictions
  std::vector<std::uint64_t> free_ns;
  std::vector<ReplayedLoad> loads;
  std::uint64_t forced_evictions = 0;  // beyond the trace's, as free memory was in pieces
  std::uint64_t failures = 0;          // blocks without a place, with nothing left to evict
  std::uint64_t moves = 0;
  Bytes moved_bytes = 0;
  double mean_fragmented_share = 0;  // of the capacity, after each load
  double max_fragmented_share = 0;
};

struct ReplayOptions {
  // A monotonic clock, in nanoseconds or any other unit to report.
  std::function<std::uint64_t()> now_ns;
  // Maximum to move at each idle event; 0: no consolidation.
  Bytes idle_move_bytes = 256 * kMiB;
};

// Replays a trace. If a block gets no place, evicts functions, the least recently loaded first,
// until the block does.
ReplayReport ReplayTrace(const AllocationTrace& trace, ReplayTarget& target,
                         const ReplayOptions& options);

}  // namespace torpor::memory
