#include "emulator/ptx/reconvergence.h"

#include <algorithm>
#include <tuple>

namespace torpor::ptx {

// Lanes at a barrier wait until no others of their warp can run. The back edge of a loop that
// spins comes after all other lanes, which may hold what it waits for, be it behind a barrier of
// the warp that does not concern the lanes that spin.
struct Reconvergence::Priority {
  enum class Rank : std::uint8_t { kRuns, kWarpBarrier, kSpins, kBlockBarrier };
  Rank rank;
  std::uint32_t block;
  bool operator<(const Priority& other) const {
    return std::tie(rank, block) < std::tie(other.rank, other.block);
  }
};

Reconvergence::Reconvergence(const ControlFlow& flow, const std::vector<bool>& divergent)
    : flow_(flow), divergent_(divergent), pending_(flow.blocks.size(), BitSet(flow.blocks.size())) {
  Propagate();
}

Reconvergence::Priority Reconvergence::PriorityOf(std::uint32_t from, std::uint32_t to) const {
  using Rank = Priority::Rank;
  const Block& target = flow_.blocks[to];
  if (target.starts_with_barrier) return {Rank::kBlockBarrier, to};
  if (target.spins && to <= from && from < target.loop_end) return {Rank::kSpins, to};
  return {target.is_warp_barrier ? Rank::kWarpBarrier : Rank::kRuns, to};
}

std::vector<std::uint32_t> Reconvergence::Released(std::uint32_t block) const {
  std::vector<std::uint32_t> released;
  if (!flow_.blocks[block].is_warp_barrier) return released;
  pending_[block].ForEach([&](std::size_t b) {
    if (flow_.blocks[b].is_warp_barrier) released.push_back(static_cast<std::uint32_t>(b));
  });
  return released;
}

BitSet Reconvergence::StillWaiting(std::uint32_t block) const {
  BitSet waiting = pending_[block];
  for (const std::uint32_t released : Released(block)) waiting.Erase(released);
  return waiting;
}

std::vector<std::vector<std::uint32_t>> Reconvergence::Edges(std::uint32_t block) const {
  const Block& source = flow_.blocks[block];
  std::vector<std::uint32_t> targets = source.successors;
  for (const std::uint32_t other : Released(block)) {
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

std::vector<std::uint32_t> Reconvergence::Candidates(
    std::uint32_t block, const std::vector<std::uint32_t>& targets) const {
  std::vector<std::uint32_t> order;
  StillWaiting(block).ForEach(
      [&](std::size_t b) { order.push_back(static_cast<std::uint32_t>(b)); });
  order.insert(order.end(), targets.begin(), targets.end());
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return PriorityOf(block, a) < PriorityOf(block, b);
  });
  order.erase(std::unique(order.begin(), order.end()), order.end());
  // Where all lanes may have left, nobody is certain to be at a target.
  const bool certain = !targets.empty() && !(divergent_[block] && flow_.blocks[block].terminator ==
                                                                      Terminator::kConditionalExit);
  if (certain) {
    const auto last = std::find_if(order.rbegin(), order.rend(), [&](std::uint32_t b) {
      return std::find(targets.begin(), targets.end(), b) != targets.end();
    });
    order.erase(last.base(), order.end());
  }
  return order;
}

void Reconvergence::Propagate() {
  if (flow_.blocks.empty()) return;
  std::vector<std::uint32_t> work = {0};
  std::vector<bool> visited(flow_.blocks.size());
  visited[0] = true;
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    for (const std::vector<std::uint32_t>& targets : Edges(block)) {
      BitSet waiting = StillWaiting(block);
      for (const std::uint32_t target : targets) waiting.Insert(target);
      for (const std::uint32_t next : Candidates(block, targets)) {
        waiting.Erase(next);
        const bool grew = pending_[next].UniteWith(waiting);
        if (!grew && visited[next]) continue;
        visited[next] = true;
        work.push_back(next);
      }
    }
  }
}

}  // namespace torpor::ptx
