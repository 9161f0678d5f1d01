#include "memory/trace/replay.h"

#include <algorithm>
#include <list>
#include <map>
#include <unordered_map>
#include <utility>

namespace torpor::memory {
namespace {

using Kind = TraceEvent::Kind;

class Replay {
 public:
  Replay(ReplayTarget& target, const ReplayOptions& options) : target_(target), options_(options) {}

  ReplayReport Run(const AllocationTrace& trace) {
    for (const TraceEvent& event : trace) Apply(event);
    if (loads_ > 0) report_.mean_fragmented_share /= static_cast<double>(loads_);
    return std::move(report_);
  }

 private:
  struct BlockState {
    Bytes bytes = 0;
    std::optional<std::uint64_t> address;
  };
  using Blocks = std::map<std::uint32_t, BlockState>;

  void Apply(const TraceEvent& event) {
    switch (event.kind) {
      case Kind::kLoad:
        return Load(event.function);
      case Kind::kEvict:
        Evict(event.function);
        return;
      case Kind::kAllocate: {
        if (!IsLoaded(event.function)) Load(event.function);  // evicted by force before
        BlockState& block = functions_[event.function][event.block];
        block.bytes = event.bytes;
        return Place(event.function, event.block, block);
      }
      case Kind::kFree: {
        Blocks& blocks = functions_[event.function];
        const auto block = blocks.find(event.block);
        if (block == blocks.end()) return;
        Displace(block->second);
        blocks.erase(block);
        return;
      }
      case Kind::kIdle:
        return Idle();
    }
  }

  bool IsLoaded(std::uint32_t function) const {
    return std::find(recent_.begin(), recent_.end(), function) != recent_.end();
  }

  void Load(std::uint32_t function) {
    recent_.remove(function);
    recent_.push_front(function);
    const std::uint64_t begin = options_.now_ns();
    bool is_placed = false;
    for (auto& [number, block] : functions_[function]) {
      if (block.address) continue;
      Place(function, number, block);
      is_placed = true;
    }
    if (is_placed) report_.loads.push_back({function, options_.now_ns() - begin});
    SampleFragmentation();
  }

  void Place(std::uint32_t function, std::uint32_t number, BlockState& block) {
    while (true) {
      const std::uint64_t begin = options_.now_ns();
      block.address = target_.Allocate(function, block.bytes);
      const std::uint64_t end = options_.now_ns();
      if (block.address) {
        report_.allocation_ns.push_back(end - begin);
        by_address_[*block.address] = {function, number};
        return;
      }
      if (!EvictOldest(function)) break;
    }
    ++report_.failures;
  }

  // Returns false if there is no place.
  bool Displace(BlockState& block) {
    if (!block.address) return false;
    by_address_.erase(*block.address);
    const std::uint64_t begin = options_.now_ns();
    target_.Free(*block.address);
    report_.free_ns.push_back(options_.now_ns() - begin);
    block.address.reset();
    return true;
  }

  // Returns whether any block lost its place.
  bool Evict(std::uint32_t function) {
    recent_.remove(function);
    bool has_displaced = false;
    for (auto& [number, block] : functions_[function]) {
      if (Displace(block)) has_displaced = true;
    }
    return has_displaced;
  }

  bool EvictOldest(std::uint32_t but_not) {
    const auto oldest = std::find_if(recent_.rbegin(), recent_.rend(),
                                     [=](std::uint32_t function) { return function != but_not; });
    if (oldest == recent_.rend()) return false;
    if (Evict(*oldest)) ++report_.forced_evictions;
    return true;
  }

  void Idle() {
    if (options_.idle_move_bytes == 0) return;
    const ReplayTarget::Moved moved =
        target_.Idle(options_.idle_move_bytes, [this](std::uint64_t from, std::uint64_t to) {
          const auto block = by_address_.extract(from);
          const auto [function, number] = block.mapped();
          functions_[function][number].address = to;
          by_address_[to] = {function, number};
        });
    report_.moves += moved.moves;
    report_.moved_bytes += moved.bytes;
  }

  void SampleFragmentation() {
    if (target_.capacity() == 0) return;
    const double share =
        static_cast<double>(target_.fragmented()) / static_cast<double>(target_.capacity());
    ++loads_;
    report_.mean_fragmented_share += share;
    report_.max_fragmented_share = std::max(report_.max_fragmented_share, share);
  }

  ReplayTarget& target_;
  const ReplayOptions& options_;
  std::unordered_map<std::uint32_t, Blocks> functions_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> by_address_;
  std::list<std::uint32_t> recent_;  // loaded functions, the latest first
  std::uint64_t loads_ = 0;
  ReplayReport report_;
};

}  // namespace

std::optional<std::uint64_t> ArenaTarget::Allocate(std::uint32_t function, Bytes bytes) {
  return arena_.Allocate(Owner{function + std::uint64_t{1}}, bytes, kAlignment);
}

ReplayTarget::Moved ArenaTarget::Idle(
    Bytes max_bytes, const std::function<void(std::uint64_t, std::uint64_t)>& moved) {
  Moved sum;
  for (const Move& move : arena_.PlanMoves(max_bytes)) {
    if (!arena_.BeginMove(move)) continue;
    arena_.CommitMove(move.from);
    moved(move.from, move.to);
    ++sum.moves;
    sum.bytes += move.bytes;
  }
  return sum;
}

ReplayReport ReplayTrace(const AllocationTrace& trace, ReplayTarget& target,
                         const ReplayOptions& options) {
  return Replay(target, options).Run(trace);
}

}  // namespace torpor::memory
