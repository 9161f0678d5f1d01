#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "memory/handle_pool.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// All GPU memory that images may occupy, as physical handles of one size: chunks. A thread of the
// pool creates the chunks in the background, because a driver takes about 0.2 ms for each: 13 s for
// a large GPU in chunks of 2 MiB, of which the first images need only a few. A taken chunk still
// holds the bytes of its last user, a new one any bytes; the taker clears them. Thread-safe.
class PhysicalPool {
 public:
  // `chunk_bytes` is a multiple of the driver's granularity; `pool_bytes` is rounded down to
  // chunks. Creates the first chunk, so that a driver that gives none is found out at start.
  // `device` must outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes, Bytes chunk_bytes);
  // All chunks must have been returned.
  ~PhysicalPool();
  PhysicalPool(const PhysicalPool&) = delete;
  PhysicalPool& operator=(const PhysicalPool&) = delete;

  Bytes pool_bytes() const { return planned_ * chunk_bytes_; }
  Bytes chunk_bytes() const { return chunk_bytes_; }
  // Whether other processes can map chunks: found out with the first chunk, since some sandboxes
  // refuse what the driver's attribute promises.
  bool can_export() const { return can_export_; }

  // Takes `count` chunks; waits only for chunks that are still being created. ResourceExhausted if
  // the GPU has fewer free.
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> Take(std::size_t count);
  void Return(std::span<const CUmemGenericAllocationHandle> chunks);

  // Chunks that Take would return without waiting.
  std::size_t free_chunks() const;
  // Bytes that Take would return, at once or after waiting.
  Bytes free_bytes() const;

 private:
  PhysicalPool(const Device& device, std::size_t chunks, Bytes chunk_bytes, bool can_export)
      : device_(device), chunk_bytes_(chunk_bytes), planned_(chunks), can_export_(can_export) {}

  // Creates chunks until all are there, the driver fails or the pool is destroyed; on filler_.
  void Fill();
  absl::Status AddChunk();
  // Logs and keeps why no more chunks will be created.
  void GiveUp(const absl::Status& status);
  std::size_t Available() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Device& device_;
  const Bytes chunk_bytes_;
  const std::size_t planned_;  // chunks that there will be unless the driver fails
  const bool can_export_;

  mutable Mutex mutex_;
  memory::HandlePool chunks_ ABSL_GUARDED_BY(mutex_);
  absl::Status fill_status_ ABSL_GUARDED_BY(mutex_);  // why there are fewer than planned_
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar changed_;  // chunks_ or fill_status_
  std::thread filler_;
};

}  // namespace torpor::executor
