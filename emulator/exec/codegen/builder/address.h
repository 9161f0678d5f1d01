#pragma once

#include <llvm/IR/Type.h>
#include <llvm/IR/Value.h>

#include <cstdint>

#include "emulator/ptx/instruction.h"
#include "emulator/ptx/lane_shape.h"

namespace torpor::emulator {

// The addresses accessed by the lanes of a warp.
struct LaneAddress {
  ptx::Space space = ptx::Space::kGeneric;
  llvm::Value* value = nullptr;  // i64, or i32 in shared memory; lane 0's if linear; null: unknown
  ptx::LaneShape shape;          // of `value`
  std::int64_t offset = 0;       // added to `value` after its extension to 64 bits; shared only

  bool linear() const { return shape.linear(); }
};

// Data moved by each lane: `count` elements side by side.
struct Access {
  llvm::Type* element = nullptr;
  unsigned element_bytes = 0;
  unsigned count = 1;
  bool in_tile = false;  // belongs to a load of a tile of memory; see ptx/tile_loads.h

  unsigned bytes() const { return element_bytes * count; }
  // Whether a GPU makes one access of all elements of a lane.
  bool is_whole() const { return count > 1 && bytes() <= 16; }
};

}  // namespace torpor::emulator
