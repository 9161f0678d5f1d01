#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/physical_pool.h"

namespace torpor::executor {

// Backing for `address_mode: map`: chunks of the pool, mapped at the client's own addresses.
class MappedBacking final : public ImageBacking {
 public:
  // For [base, base + bytes), which is reserved with the driver and longer than the backing.
  // InvalidArgument unless whole chunks. `device` and `pool` must outlive the backing.
  static absl::StatusOr<std::unique_ptr<ImageBacking>> Open(const Device& device,
                                                            PhysicalPool& pool, std::uint64_t base,
                                                            Bytes bytes);
  // Requires that no work uses the memory.
  ~MappedBacking() override;
  MappedBacking(const MappedBacking&) = delete;
  MappedBacking& operator=(const MappedBacking&) = delete;

  absl::StatusOr<std::vector<memory::Extent>> Back(
      std::span<const memory::Extent> allocations) override;
  absl::Status Map(memory::Extent extent) override;
  absl::Status Release(memory::Extent extent, const memory::ExtentSet& live) override;
  bool empty() const override { return chunks_.empty(); }
  Bytes held_bytes() const override {
    ReaderMutexLock lock(&mutex_);
    return chunks_.size() * chunk_bytes_;
  }
  Bytes chunk_bytes() const override { return chunk_bytes_; }

  CUdeviceptr AddressOf(Bytes offset) const override { return base_ + offset; }
  std::vector<BackedPart> PartsOf(memory::Extent extent) const override {
    return {{extent, AddressOf(extent.begin)}};
  }
  bool is_translating() const override { return false; }

  AddressRange gpu_addresses() const override { return {}; }

  absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet& live,
                                           ChunkOwner& owner) override;
  absl::StatusOr<CUmemGenericAllocationHandle> HandleOf(std::uint64_t chunk) const override;

 private:
  using Index = std::uint64_t;
  struct Chunk {
    CUmemGenericAllocationHandle handle = 0;  // none if imported: the mapping keeps the memory
    bool is_mapped = false;
  };
  using Chunks = std::map<Index, Chunk>;
  static constexpr CUmemGenericAllocationHandle kImported = 0;

  MappedBacking(const Device& device, PhysicalPool& pool, std::uint64_t base, Bytes bytes)
      : device_(device),
        pool_(pool),
        base_(base),
        bytes_(bytes),
        chunk_bytes_(pool.chunk_bytes()) {}

  memory::Extent ExtentOf(Index first, Index last) const {
    return {first * chunk_bytes_, (last + 1) * chunk_bytes_};
  }
  std::vector<Index> MissingChunks(std::span<const memory::Extent> extents) const;
  absl::Status AllowAccess(const std::vector<Index>& indices);
  absl::Status ImportChunk(Index index, const UniqueFd& chunk);
  // Unmaps chunks, as far as mapped, and returns chunks of the pool.
  absl::Status GiveBack(const std::vector<Index>& indices);
  // As GiveBack, for consecutive chunks that are all mapped, or are all not.
  absl::Status GiveBackRun(Index first, Index last);

  const Device& device_;
  PhysicalPool& pool_;
  const std::uint64_t base_;
  const Bytes bytes_;
  const Bytes chunk_bytes_;

  mutable Mutex mutex_;
  // Written by the swapping thread with the mutex held; the swapping thread reads without.
  Chunks chunks_;
};

// Image memory for `address_mode: map`: chunks of the pool, mapped wherever needed in one range
// that all sessions share.
class MappedMemory final : public ImageMemory {
 public:
  // `device` and `pool` must outlive the object; `reserved` is reserved with the driver as long.
  MappedMemory(const Device& device, PhysicalPool& pool, AddressRange reserved)
      : device_(device), pool_(pool), reserved_(reserved) {}

  // InvalidArgument for addresses outside of the reservation.
  absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t base,
                                                     Bytes bytes) override;
  Bytes capacity() const override { return pool_.pool_bytes(); }
  Bytes free_bytes() const override { return pool_.free_bytes(); }

 private:
  const Device& device_;
  PhysicalPool& pool_;
  const AddressRange reserved_;
};

}  // namespace torpor::executor
