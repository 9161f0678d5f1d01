#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/executor/image/arena_memory.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// Backing for `address_mode: translate`: the chunks of client addresses that an allocation touches
// form one block, placed anywhere in the arena. Allocations that share a chunk, always small ones,
// share the block (memory/range_allocator.h, Layout::kApart).
class ArenaBacking final : public ImageBacking {
 public:
  // `memory` must outlive the backing.
  ArenaBacking(ArenaMemory& memory, SessionId session) : memory_(memory), session_(session) {}
  // Requires that no work uses the memory.
  ~ArenaBacking() override;
  ArenaBacking(const ArenaBacking&) = delete;
  ArenaBacking& operator=(const ArenaBacking&) = delete;

  absl::StatusOr<std::vector<memory::Extent>> Back(
      std::span<const memory::Extent> allocations) override;
  // Does nothing: the arena is mapped from the start.
  absl::Status Map(memory::Extent) override { return absl::OkStatus(); }
  absl::Status Release(memory::Extent extent, const memory::ExtentSet& live) override;
  bool empty() const override;
  Bytes held_bytes() const override;
  Bytes chunk_bytes() const override { return memory_.chunk_bytes(); }

  CUdeviceptr AddressOf(Bytes offset) const override;
  std::vector<BackedPart> PartsOf(memory::Extent extent) const override;
  bool is_translating() const override { return true; }
  std::shared_ptr<const AddressTable> Addresses() const override;
  std::uint64_t addresses_version() const override {
    return version_.load(std::memory_order_acquire);
  }

  absl::StatusOr<bool> Move(const memory::Move& move, CUstream stream) override;

  AddressRange gpu_addresses() const override { return memory_.addresses(); }

  // FailedPrecondition: memory of another GPU must be mapped at the client's addresses.
  absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet& live,
                                           ChunkOwner& owner) override;
  absl::StatusOr<CUmemGenericAllocationHandle> HandleOf(std::uint64_t chunk) const override;

 private:
  struct Unit {
    memory::Extent extent;
    ArenaMemory::Place place;
  };
  using Units = std::map<Bytes, Unit>;  // by begin

  memory::Extent UnitOf(memory::Extent allocation) const;
  // Returns the unit that contains `offset`, or the end.
  Units::const_iterator Find(Bytes offset) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns the unit with the arena's block at `place`, or the end.
  Units::iterator FindAt(Bytes place) ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns false if `extent` is not backed at all; FailedPrecondition if backed in part.
  absl::StatusOr<bool> IsBacked(memory::Extent extent) const;
  absl::Status Add(memory::Extent extent);
  // Records that a unit was added, released or moved.
  void NoteChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ArenaMemory& memory_;
  const SessionId session_;

  mutable Mutex mutex_;
  Units units_ ABSL_GUARDED_BY(mutex_);
  // Table of the current units; null until requested.
  mutable std::shared_ptr<const AddressTable> addresses_ ABSL_GUARDED_BY(mutex_);
  // Changes only with mutex_ held.
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace torpor::executor
