#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "memory/placement.h"
#include "server/executor/gpu/address_range.h"
#include "server/executor/image/address_table.h"
#include "server/settings/device_modes.h"

namespace torpor::executor {

using server::AddressMode;

// The executor on whose GPU an image is resident.
class ChunkOwner {
 public:
  virtual ~ChunkOwner() = default;
  // Returns descriptors of the chunks (ascending) that the owner has backed, by chunk.
  virtual absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) = 0;
};

// The GPU's memory behind one session's addresses. Extents and offsets are bytes from the begin of
// the session's range. Memory comes and goes in units of whole chunks, which may exceed the
// request. For the thread that swaps; other threads may call held_bytes, AddressOf, PartsOf,
// Addresses and HandleOf meanwhile.
class ImageBacking {
 public:
  virtual ~ImageBacking() = default;

  // Backs the allocations (ascending, disjoint), without making the addresses usable. Returns,
  // ascending, the newly backed extents, which hold bytes of former users. All or nothing;
  // ResourceExhausted if the memory does not suffice.
  virtual absl::StatusOr<std::vector<memory::Extent>> Back(
      std::span<const memory::Extent> allocations) = 0;
  // Makes the addresses of the backed `extent`, rounded out to chunks, usable by the GPU. Costs
  // time of the driver for each chunk that was not mapped yet.
  virtual absl::Status Map(memory::Extent extent) = 0;
  // Gives back the units with bytes of `extent` and without bytes of `live`. No work uses these.
  virtual absl::Status Release(memory::Extent extent, const memory::ExtentSet& live) = 0;
  virtual bool empty() const = 0;
  // Returns the memory backed here, without imported units.
  virtual Bytes held_bytes() const = 0;
  virtual Bytes chunk_bytes() const = 0;

  // Returns the GPU's address of the byte at `offset`, which is backed.
  virtual CUdeviceptr AddressOf(Bytes offset) const = 0;
  // Returns the backed `extent` in parts that are contiguous on the GPU.
  virtual std::vector<BackedPart> PartsOf(memory::Extent extent) const = 0;

  // Whether the GPU's addresses differ from the client's.
  virtual bool is_translating() const = 0;
  // If so, returns the present table for the client's pointers. Every change of a block makes a new
  // table with a new version; `addresses_version` takes no lock.
  virtual std::shared_ptr<const AddressTable> Addresses() const { return nullptr; }
  virtual std::uint64_t addresses_version() const { return 0; }

  // Carries out one of ImageMemory's moves: copies the block's bytes on `stream`, waits for the
  // copy, and uses the new place from then on. No work uses the memory meanwhile. Returns false if
  // the plan is out of date. After false or an error everything is as before.
  virtual absl::StatusOr<bool> Move(const memory::Move& /*move*/, CUstream /*stream*/) {
    return false;
  }

  // Returns the range of the GPU's addresses of all images; empty unless is_translating().
  virtual AddressRange gpu_addresses() const = 0;

  // For an image on another GPU: maps the units of exactly `live` here, as far as `owner` has
  // backed them. An empty `live` unmaps all. Returns the extents mapped now.
  virtual absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet& live,
                                                   ChunkOwner& owner) = 0;
  // Returns the pool's chunk behind the chunk of addresses, for another executor; NotFound if that
  // is not backed here by one chunk alone. Makes no call of the driver.
  virtual absl::StatusOr<CUmemGenericAllocationHandle> HandleOf(std::uint64_t chunk) const = 0;
};

// A GPU's memory for images, shared by all sessions. Thread-safe.
class ImageMemory {
 public:
  virtual ~ImageMemory() = default;

  // Opens the backing of the session's addresses, [base, base + bytes).
  virtual absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t base,
                                                             Bytes bytes) = 0;
  // Return the memory for all images together, and the unoccupied part of capacity().
  virtual Bytes capacity() const = 0;
  virtual Bytes free_bytes() const = 0;
  // Returns the part of free_bytes() outside the largest possible block; 0 if blocks may be split.
  virtual Bytes fragmented_bytes() const { return 0; }

  // Plans moves of these sessions' blocks, of at most `max_bytes` together, that join free memory.
  // Returns no move if blocks may be split.
  virtual std::vector<memory::Move> PlanMoves(const std::set<SessionId>& /*sessions*/,
                                              Bytes /*max_bytes*/) {
    return {};
  }
};

}  // namespace torpor::executor
