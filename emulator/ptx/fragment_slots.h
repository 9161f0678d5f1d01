#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Memory slots for the fragments of matrices. The registers of a wmma or mma.sync operand lie side
// by side if they are consecutive, alike and hold all lanes, so that passing the operand is passing
// an address. Unrolled kernels have thousands of products; copying each fragment would take longer,
// to compile and to run, than the products themselves. Fragments that are never alive together
// share a slot.
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

  // Whether the operand's registers lie side by side in one slot.
  bool IsInPlace(const Operand& fragment) const;
};

// All arguments must describe the same function.
FragmentSlots PlaceFragments(const Function& function, const ControlFlow& flow,
                             const LaneAnalysis& lanes);

}  // namespace torpor::ptx
