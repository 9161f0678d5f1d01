#include "memory/consolidation.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace torpor::memory {
namespace {

using Index = PartitionTable::Index;

// Neighbouring partitions joined by blocks that reach over the borders; mostly one partition.
struct Group {
  Index first = 0;
  Index last = 0;
  Bytes bytes = 0;       // cost of moving the blocks
  bool may_move = true;  // every block
  std::vector<const PlacedBlock*> blocks;

  bool IsOnePartition() const { return first == last; }
};

std::vector<Group> GroupsOf(const PartitionTable& table, const std::vector<PlacedBlock>& blocks) {
  std::vector<Group> groups;
  for (const PlacedBlock& block : blocks) {  // ascending
    const Index first = table.IndexOf(block.place.offset);
    const Index last = table.IndexOf(block.place.end() - 1);
    if (groups.empty() || groups.back().last < first) groups.push_back({first, last, 0, true, {}});
    Group& group = groups.back();
    group.last = std::max(group.last, last);
    group.bytes += block.request.bytes;
    group.may_move = group.may_move && block.may_move;
    group.blocks.push_back(&block);
  }
  return groups;
}

// Takes the targets of moves while a plan is made, so that no two moves get the same place, and
// gives the places back at the end.
class MovePlan {
 public:
  MovePlan(PartitionTable& table, Bytes max_bytes) : table_(table), budget_(max_bytes) {}
  ~MovePlan() { RollBack(0); }
  MovePlan(const MovePlan&) = delete;
  MovePlan& operator=(const MovePlan&) = delete;

  std::size_t size() const { return targets_.size(); }
  bool CanAfford(Bytes bytes) const { return bytes <= budget_; }

  // Returns false if no place was taken. The caller checks the budget first.
  bool Add(const PlacedBlock& block, std::optional<Block> target) {
    if (!target) return false;
    targets_.push_back({block.request, *target});
    moves_.push_back(
        {block.request.owner, block.place.offset, target->offset, block.request.bytes});
    budget_ -= block.request.bytes;
    return true;
  }

  // Drops all moves behind the first `size`.
  void RollBack(std::size_t size) {
    while (targets_.size() > size) {
      budget_ += targets_.back().request.bytes;
      table_.Release(targets_.back().request, targets_.back().place);
      targets_.pop_back();
      moves_.pop_back();
    }
  }

  const std::vector<Move>& moves() const { return moves_; }

 private:
  PartitionTable& table_;
  Bytes budget_;
  std::vector<PlacedBlock> targets_;
  std::vector<Move> moves_;
};

// Empties partitions of one tier into other partitions of the same tier.
class Packing {
 public:
  Packing(PartitionTable& table, MovePlan& plan) : table_(table), plan_(plan) {}
  ~Packing() {
    for (const Index index : emptied_) table_.Show(index);
  }
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  void Empty(const Group& group) {
    if (filled_.contains(group.first) || !plan_.CanAfford(group.bytes)) return;
    const std::size_t before = plan_.size();
    table_.Hide(group.first);
    const bool is_moved = std::all_of(group.blocks.begin(), group.blocks.end(),
                                      [this](const PlacedBlock* block) { return MoveOut(*block); });
    if (is_moved) {
      emptied_.push_back(group.first);
      for (std::size_t i = before; i < plan_.size(); ++i) {
        filled_.insert(table_.IndexOf(plan_.moves()[i].to));
      }
    } else {
      plan_.RollBack(before);
      table_.Show(group.first);
    }
  }

 private:
  bool MoveOut(const PlacedBlock& block) {
    const Tier tier = table_.TierOf(block.request);
    if (tier == PartitionTable::kRun)
      return false;  // a small block with an alignment of many partitions
    const std::uint32_t room = table_.RoomFor(tier, block.request);
    std::optional<Index> to = table_.FindHome(block.request.owner, tier, room);
    if (!to) to = table_.FindShared(tier, room);
    return to && plan_.Add(block, table_.TakeIn(*to, tier, block.request));
  }

  PartitionTable& table_;
  MovePlan& plan_;
  std::vector<Index> emptied_;
  std::set<Index> filled_;
};

void Pack(PartitionTable& table, std::vector<Group> groups, MovePlan& plan) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.bytes < b.bytes; });
  Packing packing(table, plan);
  for (Group& group : groups) {
    if (!group.IsOnePartition() || table.tier(group.first) == PartitionTable::kRun) continue;
    // Large blocks first, as they have the least choice.
    std::stable_sort(
        group.blocks.begin(), group.blocks.end(),
        [](const PlacedBlock* a, const PlacedBlock* b) { return a->place.bytes > b->place.bytes; });
    packing.Empty(group);
  }
}

// Returns the smallest run of free partitions below the group that holds the group, so that large
// runs stay whole.
std::optional<Bytes> FreeRunBelow(const PartitionTable& table, const Group& group) {
  const Bytes partition_bytes = table.sizes().partition_bytes;
  const Bytes bytes = (group.last - group.first + 1) * partition_bytes;
  std::optional<Block> best;
  for (const Block& run : table.free_runs()) {
    if (run.offset >= group.first * partition_bytes) break;
    if (run.bytes >= bytes && (!best || run.bytes < best->bytes)) best = run;
  }
  if (!best) return std::nullopt;
  return best->offset;
}

// Orders blocks whose place is in a tier other than their own last: a free partition gets the tier
// of its first block.
void SortForEmptyPartitions(const PartitionTable& table, Group& group) {
  std::stable_partition(group.blocks.begin(), group.blocks.end(),
                        [&table](const PlacedBlock* block) {
                          const Tier tier = table.TierOf(block->request);
                          return tier == PartitionTable::kRun ||
                                 tier == table.tier(table.IndexOf(block->place.offset));
                        });
}

void Compact(PartitionTable& table, std::vector<Group> groups, MovePlan& plan) {
  if (table.free_runs().size() < 2) return;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    if (!plan.CanAfford(group->bytes)) continue;
    const std::optional<Bytes> to = FreeRunBelow(table, *group);
    if (!to) continue;
    const Bytes down = group->first * table.sizes().partition_bytes - *to;
    const std::size_t before = plan.size();
    SortForEmptyPartitions(table, *group);
    for (const PlacedBlock* block : group->blocks) {
      if (plan.Add(*block, table.TakeAt(block->request, block->place.offset - down))) continue;
      plan.RollBack(
          before);  // an alignment of more than a partition, or blocks of other tiers only
      break;
    }
  }
}

}  // namespace

std::vector<Move> PlanConsolidation(PartitionTable& table, const std::vector<PlacedBlock>& blocks,
                                    Bytes max_bytes) {
  std::vector<Group> groups = GroupsOf(table, blocks);
  std::erase_if(groups, [](const Group& group) { return !group.may_move; });
  MovePlan plan(table, max_bytes);
  Pack(table, groups, plan);
  if (plan.size() == 0) Compact(table, std::move(groups), plan);
  return plan.moves();
}

}  // namespace torpor::memory
