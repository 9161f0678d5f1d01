#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "memory/arena_allocator.h"
#include "memory/free_blocks.h"
#include "memory/partition_table.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/physical_pool.h"

namespace torpor::executor {

// `address_mode: translate`: one range of the GPU's addresses, the arena, with all of the pool's
// memory behind it, in which blocks of images lie anywhere. The driver maps it once, at start.
//
// If the arena has enough free memory for a block but no single piece, the block is pieced
// together: scattered free chunks are mapped once more, side by side, behind the arena. That costs
// a mapping (docs/memory.md), but no request is refused for fragmentation.
//
// Thread-safe.
class ArenaMemory final : public ImageMemory {
 public:
  // A block's place: contiguous bytes from `address` on.
  struct Place {
    CUdeviceptr address = 0;
    Bytes bytes = 0;
    std::vector<Bytes> pieces;  // begins of arena blocks; several if pieced together
  };

  // Takes all of `pool`, whose chunk size is a power of two. `device` and `pool` must outlive this.
  // Partitions have slots of `slot_sizes` besides buddies; by default the sizes of
  // memory::PartitionSizes that fit. InvalidArgument if a given size does not fit.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create(
      const Device& device, PhysicalPool& pool,
      const std::optional<std::vector<Bytes>>& slot_sizes = std::nullopt);
  // All backings must be gone.
  ~ArenaMemory() override;
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  // Maps the arena on a separate thread from now on; without this, Take maps each place.
  void StartMapping();

  absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t base,
                                                     Bytes bytes) override;
  // Returns all memory except for the possible remainders behind the last slots of partitions.
  Bytes capacity() const override { return capacity_; }
  Bytes free_bytes() const override;
  Bytes fragmented_bytes() const override;
  Bytes chunk_bytes() const { return pool_.chunk_bytes(); }
  memory::ArenaUse use() const;

  // Takes a place for `bytes`, whole chunks, with bytes of former users. ResourceExhausted if there
  // is no such place; waits only for memory that is not mapped yet.
  absl::StatusOr<Place> Take(SessionId session, Bytes bytes);
  // Gives a place back; no work uses the place.
  absl::Status Give(const Place& place);

  // Plans moves; blocks in pieces stay in place.
  std::vector<memory::Move> PlanMoves(const std::set<SessionId>& sessions,
                                      Bytes max_bytes) override;
  // Holds the target of `move`, copies the bytes there and waits for the copy. Returns nullopt if
  // the plan is out of date, or if the target is not mapped yet.
  absl::StatusOr<std::optional<Place>> BeginMove(const memory::Move& move, CUstream stream);
  // Ends a move: the block is at the new place, and the old place is free.
  void CommitMove(const memory::Move& move);

  // Returns the pool's chunk at `address`, in a taken place; NotFound if the place is pieced
  // together.
  absl::StatusOr<CUmemGenericAllocationHandle> HandleAt(CUdeviceptr address) const;

  // Returns the range of the arena and of the addresses behind the arena.
  AddressRange addresses() const { return {base_, 2 * arena_bytes_}; }

 private:
  ArenaMemory(const Device& device, PhysicalPool& pool, const memory::PartitionSizes& sizes);

  absl::Status Reserve();
  void MapAll();
  // The arena's first bytes up to `end` are mapped.
  absl::Status MapThrough(Bytes end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Place> PieceTogether(SessionId session, Bytes bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<memory::Block>> TakePieces(SessionId session, Bytes bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Maps the pieces' chunks side by side at `address`; all or none.
  absl::Status MapPieces(CUdeviceptr address, const std::vector<memory::Block>& pieces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreePieces(const std::vector<memory::Block>& pieces) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsBehindArena(CUdeviceptr address) const { return address - base_ >= arena_bytes_; }

  const Device& device_;
  PhysicalPool& pool_;
  const Bytes chunk_bytes_;
  CUdeviceptr base_ = 0;  // of the arena and, behind that, as much for blocks in pieces
  Bytes arena_bytes_ = 0;
  Bytes capacity_ = 0;

  mutable Mutex mutex_;
  memory::ArenaAllocator allocator_ ABSL_GUARDED_BY(mutex_);
  memory::FreeBlocks behind_ ABSL_GUARDED_BY(mutex_);  // free addresses behind the arena
  // Of the chunks that are mapped, from the arena's begin.
  std::vector<CUmemGenericAllocationHandle> chunks_ ABSL_GUARDED_BY(mutex_);
  std::set<Bytes> pieces_ ABSL_GUARDED_BY(mutex_);  // arena blocks of places in pieces
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread mapper_;
};

}  // namespace torpor::executor
