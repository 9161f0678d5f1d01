#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/peer_socket.h"

namespace torpor::executor {

// Another executor's chunks, as this GPU reaches them: one range of addresses with a place for each
// chunk. A chunk is imported and mapped when first needed, and stays mapped as long as this object:
// later copies from the chunk cost no call of the driver but the copy's. After UnmapAfterUse a
// chunk is mapped only while used, so that no kernel of this context reaches a chunk that has
// become another domain's. Whatever memory is mapped here outlives the other executor, so drop the
// object when that executor ends. Thread-safe; no lock is held during the driver's calls.
class PeerPool {
 public:
  using Number = std::uint32_t;  // of a chunk; less than PoolDescription::chunks

  // Reserves the addresses. `device` must outlive the pool. InvalidArgument for a description of no
  // memory, or of more than a GPU has.
  static absl::StatusOr<std::shared_ptr<PeerPool>> Reserve(const Device& device,
                                                           const PoolDescription& what);
  // No copy from the chunks is pending.
  ~PeerPool();
  PeerPool(const PeerPool&) = delete;
  PeerPool& operator=(const PeerPool&) = delete;

  const PoolDescription& description() const { return what_; }

  // Adds a user to each of the chunks, mapped or not: no chunk is unmapped that has a user. Call
  // before Has and Import. InvalidArgument, without any change, for numbers outside of the pool.
  absl::Status Use(std::span<const Number> chunks);
  // Removes a user from each of the chunks. None of the user's copies from there is pending.
  void LetGo(std::span<const Number> chunks);
  // Unmaps chunks without users now, and all others as soon as the last user lets go.
  void UnmapAfterUse();

  // Whether all chunks are mapped. InvalidArgument for numbers outside of the pool.
  absl::StatusOr<bool> Has(std::span<const Number> chunks) const;
  // Maps the chunks that are not mapped yet, by their descriptors.
  absl::Status Import(const std::map<Number, UniqueFd>& chunks);
  // Returns the address of a chunk, mapped or not.
  CUdeviceptr AddressOf(Number chunk) const { return base_ + chunk * what_.chunk_bytes; }
  std::size_t mapped_chunks() const;

 private:
  enum class State : std::uint8_t { kAbsent, kComing, kMapped, kLeaving };

  PeerPool(const Device& device, const PoolDescription& what)
      : device_(device), what_(what), states_(what.chunks, State::kAbsent), users_(what.chunks) {}

  absl::Status CheckNumbers(std::span<const Number> chunks) const;
  // Waits while one of the chunks is in `state`.
  void AwaitEndOf(State state, std::span<const Number> chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the absent ones of `chunks`, which count as coming from now on.
  std::vector<Number> Claim(const std::map<Number, UniqueFd>& chunks);
  absl::Status MapAll(const std::vector<Number>& claimed, const std::map<Number, UniqueFd>& chunks);
  void Settle(const std::vector<Number>& claimed, State state);
  bool IsUnused(Number chunk) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return states_[chunk] == State::kMapped && users_[chunk] == 0;
  }
  // Unmaps chunks, ascending, that the caller has marked as leaving.
  void Leave(const std::vector<Number>& chunks);
  // Unmaps mapped chunks, ascending.
  void Unmap(const std::vector<Number>& chunks);

  const Device& device_;
  const PoolDescription what_;
  CUdeviceptr base_ = 0;

  mutable Mutex mutex_;
  // By number. A chunk with users is not leaving.
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> users_ ABSL_GUARDED_BY(mutex_);
  bool keeps_mappings_ ABSL_GUARDED_BY(mutex_) = true;
  absl::CondVar settled_;  // a chunk is no longer coming or leaving
};

}  // namespace torpor::executor
