#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"

namespace torpor::ptx {

// Where lanes of a warp wait while others run: thread frontiers (Diamos et al., MICRO 2011).
// A warp always runs the earliest block (in ControlFlow order) at which lanes wait, so lanes
// reconverge at the immediate post-dominator of a divergent branch, or earlier. `pending(b)` is
// the set of blocks at which lanes may wait while b runs; where it is empty, and branches are
// uniform, generated code needs no masks at all.
class Reconvergence {
 public:
  // `divergent[b]`: whether lanes may disagree at the end of block b.
  Reconvergence(const ControlFlow& flow, const std::vector<bool>& divergent);

  const BitSet& pending(std::uint32_t block) const { return pending_[block]; }
  // Whether all lanes that began the function run `block` together.
  bool has_all_lanes(std::uint32_t block) const {
    return pending_[block].empty() && !some_have_ended_.Contains(block);
  }

  // Lanes of a warp that wait for each other may do so at different barriers. When the warp
  // barrier `block` has been passed, those at these other ones go on to their successors, too, if
  // all lanes that they wait for have arrived.
  std::vector<std::uint32_t> OtherWarpBarriers(std::uint32_t block) const;

  struct Candidate {
    std::uint32_t block;
    // A warp barrier that counts only if no lane that its lanes wait for is still on its way.
    bool if_ready;
  };
  // The blocks to try after `block` when its lanes have gone to `targets` (none: they are done),
  // in order; run the first one with lanes. When `targets` is not empty the last entry certainly
  // has lanes if those before have none.
  std::vector<Candidate> Candidates(std::uint32_t block,
                                    const std::vector<std::uint32_t>& targets) const;

  // The sets of targets that lanes of `block` may take together.
  std::vector<std::vector<std::uint32_t>> Edges(std::uint32_t block) const;

 private:
  struct Priority;
  Priority PriorityOf(std::uint32_t from, const Candidate& to) const;
  bool MayEndSome(std::uint32_t block) const;
  void Propagate();

  const ControlFlow& flow_;
  const std::vector<bool>& divergent_;
  std::vector<BitSet> pending_;
  BitSet some_have_ended_;  // blocks that lanes run when others may have left the function
};

}  // namespace torpor::ptx
