#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/image/address_table.h"

namespace torpor::executor {

// An image's chunks on another GPU, to copy from.
class PeerCopy {
 public:
  virtual ~PeerCopy() = default;
  // Returns this GPU's addresses of the chunks (ascending), as far as the owner has backed them, by
  // chunk. The addresses are valid as long as this object.
  virtual absl::StatusOr<std::map<std::uint64_t, CUdeviceptr>> Reach(
      const std::vector<std::uint64_t>& chunks) = 0;
};

// Another GPU's copy of an image, as this GPU's source. The copy's chunks are asked for on demand,
// more at a time as copying goes on, so that the first bytes do not wait for the last chunks.
//
// Not thread-safe. Extents are bytes from the begin of the session's range.
class PeerSource {
 public:
  // `chunks`, at least one, are in the order of use.
  PeerSource(std::unique_ptr<PeerCopy> copy, std::vector<std::uint64_t> chunks, Bytes chunk_bytes);
  // No copy from this source is pending.
  ~PeerSource() = default;
  PeerSource(const PeerSource&) = delete;
  PeerSource& operator=(const PeerSource&) = delete;

  // Returns `extent`, not empty, which lies in the chunks, in parts that are contiguous at this
  // GPU's addresses of the copy. Returns nothing if the owner does not give the chunks, and asks
  // for no more.
  std::vector<BackedPart> Reach(memory::Extent extent);

 private:
  absl::Status AskForMore();
  bool Knows(memory::Extent extent) const;
  std::vector<BackedPart> PartsOf(memory::Extent extent) const;

  const std::unique_ptr<PeerCopy> copy_;
  const std::vector<std::uint64_t> chunks_;
  const Bytes chunk_bytes_;

  std::size_t asked_ = 0;  // of chunks_
  std::size_t next_count_ = 1;
  std::map<std::uint64_t, CUdeviceptr> addresses_;  // by chunk
  bool is_lost_ = false;
};

}  // namespace torpor::executor
