#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/mutex.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The pieces of a host mapping that are registered with the driver, so that copies are asynchronous
// and kernels can reach the memory. Pieces are whole pages and do not overlap; all their pages
// exist. Thread-safe; questions never wait for the driver, which takes 0.1 s to register a GiB.
class PinnedMemory {
 public:
  // A piece of Ensure or RegisterNext lies within one slot, an aligned part of the mapping: who
  // needs memory that another thread registers waits 6 ms at most.
  static constexpr Bytes kSlotBytes = 64 * kMiB;

  // Starts without registrations. `base` must stay mapped until the object is destroyed; Ensure
  // rounds to `unit`, a multiple of the page size.
  PinnedMemory(const Device& device, std::uint8_t* base, Bytes bytes, Bytes unit);
  // Requires that no work uses the memory.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Registers exactly `piece`. AlreadyExists if a part is registered.
  absl::Status Register(memory::Extent piece);
  // Unregisters exactly `piece`. NotFound if `piece` was not registered as one piece.
  absl::Status Unregister(memory::Extent piece);
  // Unregisters every piece that overlaps `extent`. Requires that no work uses the pieces.
  absl::Status UnregisterOverlapping(memory::Extent extent);

  // Whether `extent` lies in one registered piece.
  bool Contains(memory::Extent extent) const;

  // Registers the unregistered parts of `extent`. Waits for threads that are about to register
  // some.
  absl::Status Ensure(memory::Extent extent);
  // Registers one piece of `extent`, if a part is unregistered. Returns whether there was such a
  // part.
  absl::StatusOr<bool> RegisterNext(memory::Extent extent);

  // Splits `extent` at the borders of registrations, because the driver refuses a copy that spans
  // two.
  std::vector<memory::Extent> Split(memory::Extent extent) const;

  std::uint8_t* at(Bytes offset) const { return base_ + offset; }

 private:
  using Pieces = std::map<Bytes, Bytes>;  // begin -> end

  absl::Status CheckInside(memory::Extent piece) const;
  // Registers claimed memory, which is no longer claimed afterwards.
  absl::Status RegisterClaimed(memory::Extent piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // Unregisters a piece that was taken out of pieces_ and claimed.
  absl::Status UnregisterClaimed(memory::Extent piece) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the piece out of pieces_ and claims its memory.
  memory::Extent Claim(Pieces::const_iterator piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitClaimsWithin(memory::Extent extent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Device& device_;
  std::uint8_t* const base_;
  const Bytes bytes_;
  const Bytes unit_;
  mutable Mutex mutex_;
  Pieces pieces_ ABSL_GUARDED_BY(mutex_);
  memory::ExtentSet pinned_ ABSL_GUARDED_BY(mutex_);  // the union of pieces_
  // Memory that a thread registers or unregisters at the moment, without the lock.
  memory::ExtentSet claimed_ ABSL_GUARDED_BY(mutex_);
  absl::CondVar settled_;  // memory is claimed no longer
};

}  // namespace torpor::executor
