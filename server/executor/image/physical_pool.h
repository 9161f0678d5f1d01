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
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/handle_pool.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/pool_client.h"
#include "server/executor/image/pool_description.h"
#include "server/executor/image/pool_size.h"

namespace torpor::executor {

// All GPU memory that images may occupy, as physical handles of one size: chunks. All are created,
// or imported from their owner, at start, so that torpord learns what there is; some 0.03 to 0.2 ms
// each. Imported chunks are taken from the owner, and returned there. A taken chunk holds any
// bytes, such as those of its last user; of an owner's chunk only users of one domain see those.
// The taker clears what it needs. Thread-safe; no lock is held while the owner is asked.
class PhysicalPool {
 public:
  // Creates `pool_bytes` of chunks, rounded down. A driver that gives less has nothing left, so
  // some chunks go back to leave `reserve` free (ChunksToGiveBack), which is logged. `chunk_bytes`
  // is a multiple of the driver's granularity. Returns an error if there is no room for one chunk.
  // `device` must outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Create(const Device& device,
                                                              Bytes pool_bytes, Bytes chunk_bytes,
                                                              Bytes reserve = 0);
  // Imports all chunks of the pool that another process owns, with the owner's numbers. Several
  // processes may import the pool: the owner says who has which chunk. `device` and `owner` must
  // outlive the pool.
  static absl::StatusOr<std::unique_ptr<PhysicalPool>> Import(const Device& device,
                                                              const PoolClient& owner);
  // All chunks must have been returned.
  ~PhysicalPool();
  PhysicalPool(const PhysicalPool&) = delete;
  PhysicalPool& operator=(const PhysicalPool&) = delete;

  Bytes pool_bytes() const { return by_number_.size() * chunk_bytes_; }
  Bytes chunk_bytes() const { return chunk_bytes_; }
  // Whether other processes can map chunks: tried once, since some sandboxes refuse what the
  // driver's attribute promises.
  bool can_export() const { return can_export_; }

  // Returns the number of chunks, taken or free, and the place of one of them among all, from 0:
  // the same as long as the pool.
  std::size_t chunks() const { return numbers_.size(); }
  std::optional<std::uint32_t> NumberOf(CUmemGenericAllocationHandle chunk) const;

  // Returns the chunk of a number less than chunks().
  CUmemGenericAllocationHandle HandleOf(std::uint32_t number) const {
    return by_number_.at(number);
  }

  // Returns a descriptor by which other processes can map the chunk: from the owner, where there is
  // one. `number` is less than chunks().
  absl::StatusOr<UniqueFd> Export(std::uint32_t number) const;

  // Names the domain whose bytes this process may see in an owner's chunks. Call at most once and,
  // with an owner, before the first Take. 0 if never called: the domain of processes that nobody
  // tells apart.
  void SetDomain(std::uint64_t domain);

  // Takes `count` chunks. ResourceExhausted if fewer are free.
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> Take(std::size_t count);
  void Return(std::span<const CUmemGenericAllocationHandle> chunks);

  // With an owner, as of the owner's last answer to this process.
  std::size_t free_chunks() const;
  Bytes free_bytes() const { return free_chunks() * chunk_bytes_; }

 private:
  PhysicalPool(const Device& device, Bytes chunk_bytes, bool can_export, const PoolClient* owner)
      : device_(device), chunk_bytes_(chunk_bytes), can_export_(can_export), owner_(owner) {}

  // Creates `count` chunks, or fewer, as Create says.
  absl::Status Fill(std::size_t count, Bytes reserve);
  absl::Status ImportAll(std::uint64_t count);
  // Takes chunks in, and numbers them.
  void Add(std::vector<CUmemGenericAllocationHandle> chunks);
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> TakeOwn(std::size_t count);
  absl::StatusOr<std::vector<CUmemGenericAllocationHandle>> TakeFromOwner(std::size_t count);
  absl::Status NotEnough(std::size_t count, std::size_t free) const;

  const Device& device_;
  const Bytes chunk_bytes_;
  const bool can_export_;
  const PoolClient* const owner_;  // null: this process owns the chunks
  // Neither changes once the pool is filled.
  std::vector<CUmemGenericAllocationHandle> by_number_;
  absl::flat_hash_map<CUmemGenericAllocationHandle, std::uint32_t> numbers_;

  mutable Mutex mutex_;
  memory::HandlePool own_ ABSL_GUARDED_BY(mutex_);  // empty with an owner
  std::uint64_t domain_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_domain_final_ ABSL_GUARDED_BY(mutex_) = false;
  std::size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // chunks
};

// Creates the pool that PoolBytes tells. Logs how much of the memory that is, and what is missing.
absl::StatusOr<std::unique_ptr<PhysicalPool>> MakePool(const Device& device, const PoolNeeds& needs,
                                                       Bytes chunk_bytes);

// Describes the pool to other processes, under a new id.
PoolDescription Describe(const PhysicalPool& pool);

}  // namespace torpor::executor
