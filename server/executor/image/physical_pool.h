#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/handle_balance.h"
#include "memory/handle_pool.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// All of the GPU's memory that images may occupy, as physical handles of one size or of two. A
// thread of the pool creates the handles from the start on: a driver takes about 0.2 ms for each,
// which is 13 s for a large GPU in small ones, and the first images need only the first few. What a
// handle's memory held before is not cleared; the taker does that. Thread-safe.
class PhysicalPool {
 public:
  // Handles of `chunk_bytes`, a multiple of the driver's granularity, only; `pool_bytes` is rounded
  // down to chunks. `device` must outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes, Bytes chunk_bytes);
  // Handles of two sizes, at first as many of each as StartCounts says.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes,
                                                              memory::HandleSizes sizes,
                                                              memory::HandleBalance balance);
  // All handles must be back.
  ~PhysicalPool();
  PhysicalPool(const PhysicalPool&) = delete;
  PhysicalPool& operator=(const PhysicalPool&) = delete;

  Bytes pool_bytes() const { return pool_bytes_; }
  Bytes chunk_bytes() const { return sizes_.small_bytes; }
  const memory::HandleSizes& sizes() const { return sizes_; }

  // ResourceExhausted if the GPU has not that many handles free; waits only for handles that are
  // still being created.
  absl::StatusOr<memory::Handles> Take(memory::HandleCounts counts);
  void Return(const memory::Handles& handles);
  // The same with small ones only.
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> Take(std::size_t count);
  void Return(std::span<const CUmemGenericAllocationHandle> chunks);

  // What Take would give at once, or after waiting.
  memory::HandleCounts available() const;
  std::size_t free_chunks() const;
  Bytes free_bytes() const { return available().bytes(sizes_); }

  // Makes at most one exchange that brings the free handles of a pool of two sizes into balance;
  // false if there is none to make. Takes some milliseconds, in which the memory of one large
  // handle is on its way: for a thread that nobody waits for, while the GPU is idle. The error of a
  // driver that does not give back what it got is the pool's from then on.
  absl::StatusOr<bool> Rebalance();

 private:
  PhysicalPool(const Device& device, memory::HandleSizes sizes, memory::HandleCounts planned,
               std::optional<memory::HandleBalance> balance)
      : device_(device),
        sizes_(sizes),
        balance_(balance),
        pool_bytes_(planned.bytes(sizes)),
        planned_(planned) {}

  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Start(std::unique_ptr<PhysicalPool> pool);
  void Fill();
  // A new handle is in the pool, or why there is none.
  absl::Status AddHandle(bool is_large);
  // No more handles are to come.
  void GiveUp(const absl::Status& status);
  void Release(const memory::Handles& handles) const;
  // With mutex_ held.
  memory::HandleCounts Available() const;
  bool NextIsLarge() const;

  const Device& device_;
  const memory::HandleSizes sizes_;
  const std::optional<memory::HandleBalance> balance_;  // nothing: one size
  const Bytes pool_bytes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  memory::HandlePool pool_;       // guarded by mutex_
  memory::HandleCounts planned_;  // guarded by mutex_; what there will be, all being well
  absl::Status fill_status_;      // guarded by mutex_; why there is less
  bool stopping_ = false;         // guarded by mutex_
  std::thread filler_;
};

}  // namespace torpor::executor
