#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::executor {

// Bytes of an image that are contiguous on the GPU, too.
struct BackedPart {
  memory::Extent extent;
  CUdeviceptr address = 0;
};

// The places of an image's blocks on the GPU at one time, for translating pointers. Immutable, so
// any thread may read a table.
class AddressTable {
 public:
  // `blocks` are ascending and disjoint. Tables of one image with the same version are equal.
  AddressTable(std::uint64_t version, const std::vector<BackedPart>& blocks);

  std::uint64_t version() const { return version_; }

  // Returns the GPU's address for the client's pointer to `offset`; 0 outside of allocations. A
  // pointer may point behind the last byte of an allocation, and a little further.
  CUdeviceptr Translate(Bytes offset) const;

 private:
  struct Block {
    Bytes reach = 0;  // from its begin pointers may point so far
    CUdeviceptr address = 0;
  };

  std::uint64_t version_;
  std::vector<Bytes> begins_;  // by themselves: a search reads nothing else
  std::vector<Block> blocks_;
};

}  // namespace torpor::executor
