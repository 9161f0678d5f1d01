#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/block_states.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/pinned_memory.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/tenant_memory.h"

namespace torpor::executor {

// Which places of an image's blocks are meant.
enum class HostPlaces {
  kOwn,
  kAnnex,
  kAll,         // own places and the annex, of an image that has left host memory whole
  kTenantFile,  // slots of the tenant's file
};

// A session's image in host memory. A block's bytes lie at the block's own place in the image's
// file, at another block's place in the annex, a second file of the same shape, or in the tenant's
// file. Extents are bytes from the begin of the session's range.
class HostImage {
 public:
  // A part of an extent, contiguous in memory.
  struct Part {
    memory::Extent extent;
    std::uint8_t* data = nullptr;
  };

  // The image's memory. A plain record.
  struct Files {
    SharedMapping own;
    SharedMapping annex;
    std::shared_ptr<TenantMemory> tenant;  // null: no block has a place there
  };

  // `states` are the blocks', and must outlive this object. Pins nothing unless `is_pinned`.
  HostImage(const Device& device, Files files, memory::BlockStates& states, bool is_pinned);

  // Maps the own places of an extent, which is the session's from now on.
  absl::Status Map(memory::Extent extent);
  // Whether the own places of [offset, offset + bytes) are mapped. Safe for untrusted numbers.
  bool Holds(std::uint64_t offset, Bytes bytes) const { return files_.own.Holds(offset, bytes); }

  // Call before bytes of the extent are written to its homes: blocks leave the tenant's file for
  // their own places, with their bytes.
  absl::Status MakeWritable(memory::Extent extent) const;

  // Maps all homes of the extent. Returns where its bytes lie, ascending.
  absl::StatusOr<std::vector<Part>> PartsOf(memory::Extent extent) const;
  // As PartsOf, pinned and cut where registrations end, for copies by the driver.
  absl::StatusOr<std::vector<Part>> PinnedPartsOf(memory::Extent extent);

  // Zeroes the extent in its homes.
  absl::Status Clear(memory::Extent extent) const;

  // Pins one piece of the homes of what `written` tells, if a part is not pinned, though its file
  // has the pages. Returns whether there was such a part. Asks `written` only if the files may have
  // grown since there was none. For one thread at a time, as Release.
  using Written = std::function<absl::StatusOr<std::vector<memory::Extent>>()>;
  absl::StatusOr<bool> PinNext(const Written& written);

  // Unpins places whose pages are about to leave their file: but for kAll, no bytes of a block
  // lie there, in the tenant's file of no session's. After kAll PinNext pins nothing before the
  // files change. No copy from the places is pending.
  absl::Status Release(memory::Extent extent, HostPlaces places);

 private:
  enum class File { kOwn, kAnnex, kTenant };

  // A part of an extent with its homes side by side in a single file.
  struct Run {
    memory::Extent extent;
    Bytes begin = 0;  // in the file
    File file = File::kOwn;

    memory::Extent place() const { return {begin, begin + extent.bytes()}; }
  };
  std::vector<Run> RunsOf(memory::Extent extent) const;
  absl::StatusOr<bool> PinNextOf(const std::vector<memory::Extent>& written);
  // DataLoss if there is no such file.
  absl::StatusOr<const SharedMapping*> MappingOf(File file) const;
  PinnedMemory& PinsOf(File file);

  const Files files_;
  memory::BlockStates& states_;
  const bool is_pinned_;
  PinnedMemory own_pins_;
  PinnedMemory annex_pins_;
  // The bytes of the files' pages when PinNext last found nothing left, or failed.
  std::optional<Bytes> pinned_at_;
};

}  // namespace torpor::executor
