#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/module.h"

namespace torpor::ptx {

enum class Terminator : std::uint8_t {
  kJump,         // to successors[0]
  kConditional,  // lanes with the guard to successors[0], others to successors[1]
  kIndexed,      // lane's index picks a successor (brx.idx)
  kExit,         // ret, exit, trap: no successor
  // Lanes with the guard leave, others go to successors[0]; or a call from which not all return.
  kConditionalExit,
};

struct Block {
  std::uint32_t first = 0;  // instructions [first, end), without the terminator
  std::uint32_t end = 0;
  Terminator terminator = Terminator::kExit;
  std::uint32_t branch = kNoIndex;  // the terminating instruction; kNoIndex for a fall-through
  std::vector<std::uint32_t> successors;
  std::uint32_t loop = kNoIndex;     // header of the innermost loop, which is blocks
  std::uint32_t loop_end = 0;        // [loop, loop_end)
  bool starts_with_barrier = false;  // of the thread block
  bool is_warp_barrier = false;      // bar.warp.sync, and nothing else
  // A loop header whose loop waits for other threads: its exit depends on an atomic or volatile
  // access inside. Such a loop must let others run.
  bool spins = false;
};

// The reachable blocks of a function body, in an order in which every block comes before its
// successors (but for back edges) and the blocks of a loop are contiguous. That order is what
// reconvergence rests on: lanes that wait at a later block are overtaken by no others.
struct ControlFlow {
  std::vector<Block> blocks;  // blocks[0] is the entry
};

inline constexpr std::uint32_t kMaxBlocks = 16384;

// `function` has a body. More than kMaxBlocks blocks give an empty result.
ControlFlow BuildControlFlow(const Function& function);

}  // namespace torpor::ptx
