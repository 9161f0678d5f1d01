#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// What PyTorch's caching allocator asks the device for: tensors lie in segments, those up to 1 MiB
// in segments of 2 MiB, those below 10 MiB in segments of 20 MiB, larger ones in their own of a
// multiple of 2 MiB. Segments stay until the cache is emptied. A model for traces: no memory.
class CachingAllocator {
 public:
  struct Segment {
    std::uint32_t number = 0;  // never used again
    Bytes bytes = 0;
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  using Tensor = Bytes;
  // Of a tensor, in the segment of that number.
  struct Place {
    std::uint32_t segment = 0;
    Bytes offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  Tensor Allocate(Bytes bytes);
  Place PlaceOf(Tensor tensor) const;
  void Free(Tensor tensor);
  // Gives segments without a tensor back.
  void EmptyCache();

  // The segments asked for, and given back, since the last call.
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
