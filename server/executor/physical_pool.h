#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/chunk_pool.h"
#include "server/executor/device.h"

namespace torpor::executor {

// All of the GPU's memory that images may occupy, as physical handles of one size. A thread of
// the pool creates the handles from the start on: a driver takes about 0.2 ms for each, which is
// 13 s for a large GPU, and the first images need only the first few. What a chunk held before is
// not cleared; the taker does that. Thread-safe.
class PhysicalPool {
 public:
  // `chunk_bytes` must be a multiple of the driver's granularity; `pool_bytes` is rounded down to
  // chunks. `device` must outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes, Bytes chunk_bytes);
  // All chunks must be back.
  ~PhysicalPool();
  PhysicalPool(const PhysicalPool&) = delete;
  PhysicalPool& operator=(const PhysicalPool&) = delete;

  Bytes pool_bytes() const { return chunk_count_ * chunk_bytes_; }
  Bytes chunk_bytes() const { return chunk_bytes_; }

  // ResourceExhausted if the GPU has not that many chunks free; waits only for chunks that are
  // still being created.
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> Take(std::size_t count);
  void Return(std::span<const CUmemGenericAllocationHandle> chunks);

  std::size_t free_chunks() const;

 private:
  PhysicalPool(const Device& device, std::size_t chunk_count, Bytes chunk_bytes)
      : device_(device), chunk_count_(chunk_count), chunk_bytes_(chunk_bytes) {}

  void Fill();
  absl::StatusOr<CUmemGenericAllocationHandle> CreateChunk() const;

  const Device& device_;
  const std::size_t chunk_count_;
  const Bytes chunk_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  memory::ChunkPool pool_;    // guarded by mutex_
  absl::Status fill_status_;  // guarded by mutex_; why there are fewer chunks than chunk_count_
  bool stopping_ = false;     // guarded by mutex_
  std::thread filler_;
};

}  // namespace torpor::executor
