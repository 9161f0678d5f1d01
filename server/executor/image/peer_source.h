#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// Another GPU's copy of an image, as this GPU's source: the copy's chunks, mapped here at separate
// addresses. Chunks are fetched on demand, more at a time as copying goes on, so that the first
// bytes do not wait for the descriptors of the last.
//
// Not thread-safe. Extents are bytes from the begin of the session's range.
class PeerSource {
 public:
  // `chunks`, at least one, are in the order of use. `device` must outlive this, `owner` the last
  // call of Reach.
  static absl::StatusOr<std::unique_ptr<PeerSource>> Open(const Device& device, ChunkOwner& owner,
                                                          std::vector<std::uint64_t> chunks,
                                                          Bytes chunk_bytes);
  // No copy from this source is pending.
  ~PeerSource();
  PeerSource(const PeerSource&) = delete;
  PeerSource& operator=(const PeerSource&) = delete;

  // Returns this GPU's address of the contiguous bytes of `extent`, which lies in the chunks.
  // Returns 0 if the owner does not give the chunks, and asks for no more.
  CUdeviceptr Reach(memory::Extent extent);

 private:
  PeerSource(const Device& device, ChunkOwner& owner, std::vector<std::uint64_t> chunks,
             Bytes chunk_bytes);

  absl::Status Reserve();
  absl::Status FetchMore();
  CUdeviceptr AddressOf(Bytes offset) const { return base_ + (offset - begin_); }

  const Device& device_;
  ChunkOwner& owner_;
  const std::vector<std::uint64_t> chunks_;
  const Bytes chunk_bytes_;
  const Bytes begin_;  // the first chunk's, and where the last one ends
  const Bytes end_;
  CUdeviceptr base_ = 0;  // where `begin_` lies

  std::size_t asked_ = 0;  // of chunks_
  std::size_t next_count_ = 1;
  memory::ExtentSet mapped_;
  bool is_lost_ = false;
};

}  // namespace torpor::executor
