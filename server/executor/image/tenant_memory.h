#pragma once

#include <utility>

#include "server/executor/gpu/device.h"
#include "server/executor/gpu/pinned_memory.h"
#include "server/executor/gpu/shared_mapping.h"

namespace torpor::executor {

// The file with equal blocks of a tenant's images (memory::TenantHome), mapped in parts and pinned
// once for all sessions of the tenant. Nobody writes here but torpord. Thread-safe.
class TenantMemory {
 public:
  // `device` must outlive the object.
  TenantMemory(const Device& device, SharedMapping mapping)
      : mapping_(std::move(mapping)),
        pins_(device, mapping_.data(), mapping_.bytes(), kHugePageBytes) {}

  const SharedMapping& mapping() const { return mapping_; }
  // torpord gives pages back in whole slots (PinnedMemory::kSlotBytes), so that no piece has bytes
  // in use when the pages behind others go.
  PinnedMemory& pins() { return pins_; }

 private:
  static constexpr Bytes kHugePageBytes = 2 * kMiB;

  const SharedMapping mapping_;
  PinnedMemory pins_;
};

}  // namespace torpor::executor
