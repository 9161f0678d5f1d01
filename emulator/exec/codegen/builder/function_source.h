#pragma once

#include <cstdint>

#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/fragment_slots.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// A PTX function and the results of all analyses: what the code generator reads. Immutable.
// `module` and `layout` must outlive the object.
struct FunctionSource {
  FunctionSource(const ptx::Module& module, std::uint32_t index, const KernelLayout& layout,
                 const ptx::BlockShape& block_shape);
  FunctionSource(const FunctionSource&) = delete;
  FunctionSource& operator=(const FunctionSource&) = delete;

  const ptx::Module& module;
  const KernelLayout& layout;
  const ptx::BlockShape block_shape;
  const std::int64_t local_stride;  // bytes of local variables of each lane
  const ptx::Function function;     // with converged collectives; see ptx/collective.h
  const ptx::ControlFlow flow;      // without blocks if the function has too many
  const ptx::LaneAnalysis lanes;
  const ptx::FragmentSlots fragments;
  const ptx::BitSet tile_loads;  // instructions

  // Whether waiting warps return from the function's code (see KernelEntry).
  bool resumable() const { return function.is_kernel && layout.resumable; }
  // Lanes in a row of the block, at most a warp.
  unsigned row_lanes() const { return block_shape.row_width(); }
  // Index of an element of function.instructions; not for copies.
  std::uint32_t IndexOf(const ptx::Instruction& instruction) const {
    return static_cast<std::uint32_t>(&instruction - function.instructions.data());
  }
};

}  // namespace torpor::emulator
