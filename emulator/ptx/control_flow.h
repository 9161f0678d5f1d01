#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/module.h"

namespace torpor::ptx {

// How a block ends.
enum class Terminator : std::uint8_t {
  kJump,         // to successors[0]
  kConditional,  // lanes with the guard to successors[0], others to successors[1]
  kIndexed,      // lane's index picks a successor (brx.idx)
  kExit,         // ret, exit, trap: no successor
  // Lanes with the guard leave, others go to successors[0]; or a call from which not all return.
  kConditionalExit,
};

// A basic block. Indices are of Function::instructions and ControlFlow::blocks.
struct BasicBlock {
  std::uint32_t first = 0;  // instructions [first, end), without the terminator
  std::uint32_t end = 0;
  Terminator terminator = Terminator::kExit;
  std::uint32_t branch = kNoIndex;  // the terminating instruction; kNoIndex for a fall-through
  std::vector<std::uint32_t> successors;
  std::uint32_t loop = kNoIndex;     // header of the innermost loop, which is blocks
  std::uint32_t loop_end = 0;        // [loop, loop_end)
  bool starts_with_barrier = false;  // of the thread block
  bool is_warp_barrier = false;      // bar.warp.sync, and nothing else
  // A loop header whose loop waits for other threads: the loop's exit depends on an atomic or
  // volatile access inside. Such a loop must let other threads run.
  bool spins = false;
};

// The reachable blocks of a function body. Every block comes before its successors, except for back
// edges, and the blocks of a loop are contiguous. Reconvergence rests on this order: no lanes
// overtake the lanes that wait at a later block.
struct ControlFlow {
  std::vector<BasicBlock> blocks;  // blocks[0] is the entry
};

inline constexpr std::uint32_t kMaxBlocks = 16384;

// `function` must have a body. The result is empty for more than kMaxBlocks blocks.
ControlFlow BuildControlFlow(const Function& function);

}  // namespace torpor::ptx
