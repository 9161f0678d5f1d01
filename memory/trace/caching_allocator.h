#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// A model of the requests that PyTorch's caching allocator makes to the device, for traces;
// allocates no memory. Tensors lie in segments: tensors up to 1 MiB in segments of 2 MiB, tensors
// below 10 MiB in segments of 20 MiB, and each larger tensor in a segment of a multiple of 2 MiB.
// Segments stay until the cache is emptied. Not thread-safe.
class CachingAllocator {
 public:
  struct Segment {
    std::uint32_t number = 0;  // unique
    Bytes bytes = 0;
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  using Tensor = Bytes;
  // Where a tensor lies.
  struct Place {
    std::uint32_t segment = 0;
    Bytes offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  Tensor Allocate(Bytes bytes);
  Place PlaceOf(Tensor tensor) const;
  void Free(Tensor tensor);
  // Gives back segments without tensors.
  void EmptyCache();

  // Return the segments requested, or given back, since the last call.
  std::vector<Segment> TakeNewSegments();
  std::vector<Segment> TakeFreedSegments();

 private:
  struct Extent {
    Bytes bytes = 0;
    bool is_small = false;
  };
  struct OpenSegment {
    Segment segment;
    bool is_small = false;
  };

  FreeBlocks& pool(bool is_small) { return is_small ? small_ : large_; }
  void AddSegment(Bytes tensor_bytes, bool is_small);

  FreeBlocks small_{0};
  FreeBlocks large_{0};
  std::map<Tensor, Extent> tensors_;
  std::map<Bytes, OpenSegment> segments_;  // by begin
  std::vector<Segment> new_;
  std::vector<Segment> freed_;
  Bytes next_begin_ = 0;
  std::uint32_t next_number_ = 0;
};

}  // namespace torpor::memory
