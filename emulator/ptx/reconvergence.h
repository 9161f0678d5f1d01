#pragma once

#include <cstdint>
#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"

namespace torpor::ptx {

// Where lanes of a warp wait while others run: thread frontiers (Diamos et al., MICRO 2011). A warp
// always runs the earliest block (in ControlFlow order) at which lanes wait, so lanes reconverge at
// the immediate post-dominator of a divergent branch, or earlier. `pending(b)` is the set of blocks
// at which lanes may wait while b runs. Where the set is empty and branches are uniform, generated
// code needs no masks. The arguments must outlive the object.
class Reconvergence {
 public:
  // `divergent[b]`: whether lanes may disagree at the end of block b.
  Reconvergence(const ControlFlow& flow, const std::vector<bool>& divergent);

  const BitSet& pending(std::uint32_t block) const { return pending_[block]; }
  // Whether all lanes that began the function run `block` together.
  bool has_all_lanes(std::uint32_t block) const {
    return pending_[block].empty() && !some_have_ended_.Contains(block);
  }

  // Lanes of a warp that wait for each other may do so at different barriers. When lanes pass the
  // warp barrier `block`, lanes at the returned barriers continue too, if all lanes they wait for
  // have arrived.
  std::vector<std::uint32_t> OtherWarpBarriers(std::uint32_t block) const;

  struct Candidate {
    std::uint32_t block;
    // The block is a warp barrier, and counts only if no lane that its lanes wait for is on its
    // way.
    bool if_ready;
  };
  // Returns the blocks to try, in order, after `block` when its lanes have gone to `targets`
  // (empty: the lanes are done); the first block with lanes runs. Unless `targets` is empty, the
  // last entry certainly has lanes if the entries before have none.
  std::vector<Candidate> Candidates(std::uint32_t block,
                                    const std::vector<std::uint32_t>& targets) const;

  // Returns the sets of targets that lanes of `block` may take together.
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
