#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Where the fragments of matrices lie in memory. The registers of an operand of wmma or mma.sync
// that follow each other, are alike and have all lanes lie side by side, so that passing them is
// passing an address: unrolled kernels have thousands of products, and copying each fragment would
// take longer to compile and to run than the products themselves. Fragments that are never alive
// together share a slot.
struct FragmentSlots {
  struct Slot {
    unsigned bits = 0;  // of a register
    std::uint32_t registers = 0;
  };
  struct Place {
    std::uint32_t slot = kNoIndex;  // kNoIndex: an ordinary register
    std::uint32_t index = 0;        // of the register in it
  };
  std::vector<Slot> slots;
  std::vector<Place> places;  // of registers

  // Whether the operand's registers lie side by side.
  bool IsInPlace(const Operand& fragment) const;
};

FragmentSlots PlaceFragments(const Function& function, const ControlFlow& flow,
                             const LaneAnalysis& lanes);

}  // namespace torpor::ptx
