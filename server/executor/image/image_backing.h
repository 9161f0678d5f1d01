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
#include "server/executor/image/address_table.h"
#include "server/settings/device_modes.h"

namespace torpor::executor {

using server::AddressMode;

// The executor on whose GPU an image is resident.
class ChunkOwner {
 public:
  virtual ~ChunkOwner() = default;
  // Descriptors of those of the chunks (ascending) that it has.
  virtual absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) = 0;
};

struct AddressRange {
  std::uint64_t begin = 0;
  Bytes bytes = 0;
};

// The GPU's memory behind one session's addresses. Extents and offsets are bytes from the begin of
// the session's range. Memory comes and goes in units, of whole chunks, that may hold more than was
// asked for. Of the thread that swaps; held_bytes, AddressOf, PartsOf, Addresses and Export may be
// called by others meanwhile.
class ImageBacking {
 public:
  virtual ~ImageBacking() = default;

  // Has memory behind the allocations (ascending, apart). Gives, ascending, what had none before:
  // anybody's bytes are there. All or nothing; ResourceExhausted if there is not as much.
  virtual absl::StatusOr<std::vector<memory::Extent>> Back(
      std::span<const memory::Extent> allocations) = 0;
  // Gives back the units with bytes of `extent` that hold nothing of `live`. Nothing uses them.
  virtual absl::Status Release(memory::Extent extent, const memory::ExtentSet& live) = 0;
  virtual bool empty() const = 0;
  // Memory that is backed here and nobody else's.
  virtual Bytes held_bytes() const = 0;
  virtual Bytes chunk_bytes() const = 0;

  // Where the GPU finds the byte at `offset`, which is backed.
  virtual CUdeviceptr AddressOf(Bytes offset) const = 0;
  // `extent`, which is backed, cut where its bytes are not side by side on the GPU.
  virtual std::vector<BackedPart> PartsOf(memory::Extent extent) const = 0;

  // Whether the GPU knows the bytes by other addresses than the client.
  virtual bool is_translating() const = 0;
  // Then what the client's pointers are translated by, as it is now. It is another table as soon as
  // a block has come, gone or moved; `addresses_version`, which costs no lock, is then another
  // number than the earlier table's.
  virtual std::shared_ptr<const AddressTable> Addresses() const { return nullptr; }
  virtual std::uint64_t addresses_version() const { return 0; }

  // Carries out one of ImageMemory's moves, of one of its blocks: copies the bytes on `stream`,
  // waits for that, and from then on they are there. Nothing uses the memory meanwhile. False, and
  // all is as before, if what the plan was made of has changed; so it is after an error.
  virtual absl::StatusOr<bool> Move(const memory::Move& /*move*/, CUstream /*stream*/) {
    return false;
  }

  // The addresses by which the GPU knows images, whosever; nothing unless is_translating().
  virtual AddressRange gpu_addresses() const = 0;

  // The image is another GPU's: makes the units of exactly `live` reachable that their owner has.
  // With nothing live lets go of all. Gives what is reachable now.
  virtual absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet& live,
                                                   ChunkOwner& owner) = 0;
  // A descriptor of the chunk for another executor; NotFound if it is not backed, or cannot be
  // given.
  virtual absl::StatusOr<UniqueFd> Export(std::uint64_t chunk) = 0;
};

// A GPU's memory for images, of which each session gets its part. Thread-safe.
class ImageMemory {
 public:
  virtual ~ImageMemory() = default;

  // What is behind [base, base + bytes), which are the session's addresses.
  virtual absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t base,
                                                             Bytes bytes) = 0;
  // What images may occupy together; what of it none does.
  virtual Bytes capacity() const = 0;
  virtual Bytes free_bytes() const = 0;
  // Of it what one block of all of it would not get; 0 where any free memory serves.
  virtual Bytes fragmented_bytes() const { return 0; }

  // Moves, of at most `max_bytes` together, of blocks of these sessions that bring free memory
  // together. None where any free memory serves.
  virtual std::vector<memory::Move> PlanMoves(const std::set<SessionId>& /*sessions*/,
                                              Bytes /*max_bytes*/) {
    return {};
  }
};

}  // namespace torpor::executor
