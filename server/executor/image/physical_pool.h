#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "memory/handle_pool.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// All GPU memory that images may occupy, as physical handles of one size: chunks. All are created
// at start, so that torpord learns what there is; some 0.03 to 0.2 ms each. A taken chunk still
// holds the bytes of its last user, a new one any bytes; the taker clears them. Thread-safe.
class PhysicalPool {
 public:
  // Creates `pool_bytes` of chunks, rounded down. A driver that gives less has nothing left, so
  // some chunks go back to leave `reserve` free (ChunksToGiveBack), which is logged. `chunk_bytes`
  // is a multiple of the driver's granularity. Returns an error if there is no room for one chunk.
  // `device` must outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes, Bytes chunk_bytes,
                                                              Bytes reserve = 0);
  // All chunks must have been returned.
  ~PhysicalPool();
  PhysicalPool(const PhysicalPool&) = delete;
  PhysicalPool& operator=(const PhysicalPool&) = delete;

  Bytes pool_bytes() const;
  Bytes chunk_bytes() const { return chunk_bytes_; }
  // Whether other processes can map chunks: tried once, since some sandboxes refuse what the
  // driver's attribute promises.
  bool can_export() const { return can_export_; }

  // Returns the number of chunks, taken or free, and the place of one of them among all, from 0:
  // the same as long as the pool.
  std::size_t chunks() const { return numbers_.size(); }
  std::optional<std::uint32_t> NumberOf(CUmemGenericAllocationHandle chunk) const;

  // Takes `count` chunks. ResourceExhausted if fewer are free.
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> Take(std::size_t count);
  void Return(std::span<const CUmemGenericAllocationHandle> chunks);

  std::size_t free_chunks() const;
  Bytes free_bytes() const { return free_chunks() * chunk_bytes_; }

 private:
  PhysicalPool(const Device& device, Bytes chunk_bytes, bool can_export)
      : device_(device), chunk_bytes_(chunk_bytes), can_export_(can_export) {}

  // Creates `count` chunks, or fewer, as Create says.
  absl::Status Fill(std::size_t count, Bytes reserve);

  const Device& device_;
  const Bytes chunk_bytes_;
  const bool can_export_;
  // Does not change once the pool is filled.
  absl::flat_hash_map<CUmemGenericAllocationHandle, std::uint32_t> numbers_;

  mutable Mutex mutex_;
  memory::HandlePool chunks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
