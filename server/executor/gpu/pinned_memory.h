#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Which pieces of a host mapping the driver knows, so that copies to and from them are
// asynchronous and kernels reach them. Pieces are whole pages and do not overlap. Thread-safe.
class PinnedMemory {
 public:
  // Registers nothing yet. `base` is mapped and stays so until this is gone; `unit` (a multiple of
  // the page size) is what Ensure rounds to.
  PinnedMemory(const Device& device, std::uint8_t* base, Bytes bytes, Bytes unit);
  // Nothing uses the memory any more.
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Exactly this piece. AlreadyExists if some of it is registered.
  absl::Status Register(memory::Extent piece);
  // NotFound if it was not registered as exactly this piece.
  absl::Status Unregister(memory::Extent piece);
  // Unregisters every piece that overlaps `extent`; nothing uses them now.
  absl::Status UnregisterOverlapping(memory::Extent extent);

  // Whether `extent` lies in one registered piece.
  bool Contains(memory::Extent extent) const;

  // Registers whatever of `extent` is not yet registered.
  absl::Status Ensure(memory::Extent extent);

  // `extent` cut where one registration ends and the next begins: the driver refuses a copy
  // that spans two.
  std::vector<memory::Extent> Split(memory::Extent extent) const;

  std::uint8_t* at(Bytes offset) const { return base_ + offset; }

 private:
  using Pieces = std::map<Bytes, Bytes>;  // begin -> end

  absl::Status RegisterLocked(memory::Extent piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnregisterLocked(Pieces::const_iterator piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Device& device_;
  std::uint8_t* const base_;
  const Bytes bytes_;
  const Bytes unit_;
  mutable Mutex mutex_;
  Pieces pieces_ ABSL_GUARDED_BY(mutex_);
  memory::ExtentSet pinned_ ABSL_GUARDED_BY(mutex_);  // the union of pieces_
};

}  // namespace torpor::executor
