#include "emulator/ptx/reconvergence.h"

#include <algorithm>
#include <tuple>

namespace torpor::ptx {

// Lanes at a barrier wait until no others of their warp can run. The back edge of a spinning loop
// comes after all other lanes, since they may release the loop.
struct Reconvergence::Priority {
  enum class Rank : std::uint8_t { kRuns, kSpins, kWarpBarrier, kBlockBarrier };
  Rank rank;
  std::uint32_t block;
  bool operator<(const Priority& other) const {
    return std::tie(rank, block) < std::tie(other.rank, other.block);
  }
};

Reconvergence::Reconvergence(const ControlFlow& flow, const std::vector<bool>& divergent)
    : flow_(flow),
      divergent_(divergent),
      pending_(flow.blocks.size(), BitSet(flow.blocks.size())),
      some_have_ended_(flow.blocks.size()) {
  Propagate();
}

// Ranks a block as a target after `from`: lower values run first.
Reconvergence::Priority Reconvergence::PriorityOf(std::uint32_t from, const Candidate& to) const {
  using Rank = Priority::Rank;
  const BasicBlock& target = flow_.blocks[to.block];
  if (target.starts_with_barrier) return {Rank::kBlockBarrier, to.block};
  if (target.is_warp_barrier && !to.if_ready) return {Rank::kWarpBarrier, to.block};
  const bool spins = target.spins && to.block <= from && from < target.loop_end;
  return {spins ? Rank::kSpins : Rank::kRuns, to.block};
}

std::vector<std::uint32_t> Reconvergence::OtherWarpBarriers(std::uint32_t block) const {
  std::vector<std::uint32_t> others;
  if (!flow_.blocks[block].is_warp_barrier) return others;
  pending_[block].ForEach([&](std::size_t b) {
    if (flow_.blocks[b].is_warp_barrier) others.push_back(static_cast<std::uint32_t>(b));
  });
  return others;
}

std::vector<std::vector<std::uint32_t>> Reconvergence::Edges(std::uint32_t block) const {
  const BasicBlock& source = flow_.blocks[block];
  std::vector<std::uint32_t> targets = source.successors;
  for (const std::uint32_t other : OtherWarpBarriers(block)) {
    targets.push_back(flow_.blocks[other].successors[0]);
  }
  if (divergent_[block] || source.is_warp_barrier) return {targets};
  std::vector<std::vector<std::uint32_t>> edges;
  edges.reserve(targets.size() + 1);
  for (const std::uint32_t target : targets) edges.push_back({target});
  const bool may_exit = source.terminator == Terminator::kExit ||
                        source.terminator == Terminator::kConditionalExit || targets.empty();
  if (may_exit) edges.emplace_back();
  return edges;
}

std::vector<Reconvergence::Candidate> Reconvergence::Candidates(
    std::uint32_t block, const std::vector<std::uint32_t>& targets) const {
  BitSet waiting = pending_[block];
  for (const std::uint32_t target : targets) waiting.Insert(target);
  bool others_run = false;
  bool spins = false;
  waiting.ForEach([&](std::size_t b) {
    const auto candidate = static_cast<std::uint32_t>(b);
    others_run |= !flow_.blocks[b].is_warp_barrier;
    spins |= PriorityOf(block, {candidate, true}).rank == Priority::Rank::kSpins;
  });
  // A barrier becomes ready when lanes arrive there or at another barrier (see OtherWarpBarriers),
  // or end. Ended lanes need to be noticed only before lanes spin: the release may lie behind the
  // barrier.
  std::vector<Candidate> order;
  waiting.ForEach([&](std::size_t b) {
    const auto candidate = static_cast<std::uint32_t>(b);
    order.push_back({candidate, false});
    const bool arrives = std::find(targets.begin(), targets.end(), candidate) != targets.end();
    if (flow_.blocks[b].is_warp_barrier && others_run && (arrives || spins)) {
      order.push_back({candidate, true});
    }
  });
  std::sort(order.begin(), order.end(), [&](const Candidate& a, const Candidate& b) {
    return PriorityOf(block, a) < PriorityOf(block, b);
  });
  // If all lanes may have left, no lane is certain to be at a target.
  const bool certain = !targets.empty() && !(divergent_[block] && flow_.blocks[block].terminator ==
                                                                      Terminator::kConditionalExit);
  if (certain) {
    const auto last = std::find_if(order.rbegin(), order.rend(), [&](const Candidate& c) {
      return !c.if_ready && std::find(targets.begin(), targets.end(), c.block) != targets.end();
    });
    order.erase(last.base(), order.end());
  }
  return order;
}

// Whether lanes may continue after others have left the function at the end of `block`.
bool Reconvergence::MayEndSome(std::uint32_t block) const {
  const Terminator terminator = flow_.blocks[block].terminator;
  return terminator == Terminator::kExit ||
         (terminator == Terminator::kConditionalExit && divergent_[block]);
}

// Propagates, from the entry on, the sets of blocks where lanes may wait, until nothing changes.
void Reconvergence::Propagate() {
  if (flow_.blocks.empty()) return;
  std::vector<std::uint32_t> work = {0};
  std::vector<bool> visited(flow_.blocks.size());
  visited[0] = true;
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    const bool ended = some_have_ended_.Contains(block) || MayEndSome(block);
    for (const std::vector<std::uint32_t>& targets : Edges(block)) {
      BitSet waiting = pending_[block];
      for (const std::uint32_t target : targets) waiting.Insert(target);
      for (const auto& [next, if_ready] : Candidates(block, targets)) {
        waiting.Erase(next);
        bool grew = pending_[next].UniteWith(waiting);
        if (ended && !some_have_ended_.Contains(next)) {
          some_have_ended_.Insert(next);
          grew = true;
        }
        // Lanes may stay at a barrier that was not ready.
        if (if_ready) waiting.Insert(next);
        if (!grew && visited[next]) continue;
        visited[next] = true;
        work.push_back(next);
      }
    }
  }
}

}  // namespace torpor::ptx
