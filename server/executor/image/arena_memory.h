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
// A block for which the arena has no place in one piece, though there is enough memory, is pieced
// together: chunks that are free here and there are mapped once more, side by side, behind the
// arena. That costs what mapping does (docs/memory.md), but nobody is refused for it.
//
// Thread-safe.
class ArenaMemory final : public ImageMemory {
 public:
  // A block's place; its bytes lie side by side from `address` on.
  struct Place {
    CUdeviceptr address = 0;
    Bytes bytes = 0;
    std::vector<Bytes> pieces;  // begins of arena blocks; more than one: pieced together
  };

  // Takes all of `pool`, whose chunks are a power of two. Both outlive it. Partitions have slots of
  // these sizes besides buddies; of none that are named: of those of memory::PartitionSizes that
  // fit. InvalidArgument if one that is named does not.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create(
      const Device& device, PhysicalPool& pool,
      const std::optional<std::vector<Bytes>>& slot_sizes = std::nullopt);
  // All backings are gone.
  ~ArenaMemory() override;
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  // Maps the arena on a thread of its own from now on; else a place is mapped when it is taken.
  void StartMapping();

  absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t base,
                                                     Bytes bytes) override;
  // All but what slots may leave over at their partitions' ends.
  Bytes capacity() const override { return capacity_; }
  Bytes free_bytes() const override;
  Bytes fragmented_bytes() const override;
  Bytes chunk_bytes() const { return pool_.chunk_bytes(); }
  memory::ArenaUse use() const;

  // A place for `bytes`, whole chunks, with anybody's bytes in it. ResourceExhausted if there is
  // none; waits only for memory that is not mapped yet.
  absl::StatusOr<Place> Take(SessionId session, Bytes bytes);
  // Nothing uses it any more.
  absl::Status Give(const Place& place);

  // What is pieced together stays where it is.
  std::vector<memory::Move> PlanMoves(const std::set<SessionId>& sessions,
                                      Bytes max_bytes) override;
  // Holds the place to which `move` leads, and copies the bytes there; waits for that. Nothing if
  // what the plan was made of has changed, or there is no memory behind that place yet.
  absl::StatusOr<std::optional<Place>> BeginMove(const memory::Move& move, CUstream stream);
  // The block is at its new place: the old one is anybody's.
  void CommitMove(const memory::Move& move);

  // A descriptor of the chunk at `address`, which is in a place that was taken; NotFound where that
  // is pieced together.
  absl::StatusOr<UniqueFd> Export(CUdeviceptr address) const;

  // Of the arena and of what is behind it.
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
  CUdeviceptr base_ = 0;  // of the arena and, behind it, as much for what is pieced together
  Bytes arena_bytes_ = 0;
  Bytes capacity_ = 0;

  mutable Mutex mutex_;
  memory::ArenaAllocator allocator_ ABSL_GUARDED_BY(mutex_);
  memory::FreeBlocks behind_ ABSL_GUARDED_BY(mutex_);  // free addresses behind the arena
  // Of the chunks that are mapped, from the arena's begin.
  std::vector<CUmemGenericAllocationHandle> chunks_ ABSL_GUARDED_BY(mutex_);
  std::set<Bytes> pieces_ ABSL_GUARDED_BY(mutex_);  // blocks of what is pieced together
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread mapper_;
};

}  // namespace torpor::executor
