#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::executor {

// Bytes of an image that lie side by side on the GPU, too.
struct BackedPart {
  memory::Extent extent;
  CUdeviceptr address = 0;
};

// Where the blocks of an image lay on the GPU at one time, to translate pointers by. It does not
// change: any thread may read it.
class AddressTable {
 public:
  // `blocks` are ascending and apart. Of two tables of one image those with the same version are
  // the same.
  AddressTable(std::uint64_t version, const std::vector<BackedPart>& blocks);

  std::uint64_t version() const { return version_; }

  // Where the GPU finds what the client's pointer to `offset` points to; 0 where there is no
  // allocation. A pointer may point behind the last byte of an allocation, and a little further.
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
