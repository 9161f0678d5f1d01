#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/units.h"
#include "memory/arena_allocator.h"
#include "memory/trace/allocation_trace.h"

namespace torpor::memory {

// What a trace is replayed over: anything that hands out memory.
class ReplayTarget {
 public:
  virtual ~ReplayTarget() = default;

  virtual std::optional<std::uint64_t> Allocate(std::uint32_t function, Bytes bytes) = 0;
  virtual void Free(std::uint64_t address) = 0;

  struct Moved {
    std::uint64_t moves = 0;
    Bytes bytes = 0;
  };
  // Nobody waits: moves at most `max_bytes`, and says where blocks are now.
  virtual Moved Idle(Bytes max_bytes,
                     const std::function<void(std::uint64_t from, std::uint64_t to)>& moved) = 0;
  // Memory that is taken for nothing now, of how much; 0 of 0 where that is not known.
  virtual Bytes fragmented() const = 0;
  virtual Bytes capacity() const = 0;
};

// An arena whose moves are done at once.
class ArenaTarget final : public ReplayTarget {
 public:
  // `knows_free` false: what is free is known below the arena only.
  explicit ArenaTarget(ArenaAllocator& arena, bool knows_free = true)
      : arena_(arena), knows_free_(knows_free) {}

  std::optional<std::uint64_t> Allocate(std::uint32_t function, Bytes bytes) override;
  void Free(std::uint64_t address) override { arena_.Free(address); }
  Moved Idle(Bytes max_bytes,
             const std::function<void(std::uint64_t, std::uint64_t)>& moved) override;
  Bytes fragmented() const override { return knows_free_ ? arena_.use().fragmented() : 0; }
  Bytes capacity() const override { return knows_free_ ? arena_.use().capacity : 0; }

 private:
  // What drivers align allocations to, at least.
  static constexpr Bytes kAlignment = 512;

  ArenaAllocator& arena_;
  const bool knows_free_;
};

// All blocks that a request brought into memory together.
struct ReplayedLoad {
  std::uint32_t function = 0;
  std::uint64_t nanoseconds = 0;  // of all allocations, with the evictions that they forced
};

struct ReplayReport {
  std::vector<std::uint64_t> allocation_ns;  // of each, without evictions
  std::vector<std::uint64_t> free_ns;
  std::vector<ReplayedLoad> loads;
  std::uint64_t forced_evictions = 0;  // that the trace does not have: memory was in pieces
  std::uint64_t failures = 0;          // blocks without a place, with nothing left to evict
  std::uint64_t moves = 0;
  Bytes moved_bytes = 0;
  double mean_fragmented_share = 0;  // of the capacity, after each load
  double max_fragmented_share = 0;
};

struct ReplayOptions {
  // Of a clock that does not go back; counts whatever is to be reported.
  std::function<std::uint64_t()> now_ns;
  // For each idle moment; 0: no consolidation.
  Bytes idle_move_bytes = 256 * kMiB;
};

// Does what the trace says. Where a block gets no place, the function whose last load is longest
// ago is evicted until it does.
ReplayReport ReplayTrace(const AllocationTrace& trace, ReplayTarget& target,
                         const ReplayOptions& options);

}  // namespace torpor::memory
