#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/buddy_tree.h"
#include "memory/free_blocks.h"
#include "memory/placement.h"
#include "memory/room_index.h"
#include "memory/slot_map.h"

namespace torpor::memory {

// How an arena is divided. A slot is a block of fixed size.
struct PartitionSizes {
  Bytes partition_bytes = 64 * kMiB;                       // a power of two
  Bytes buddy_unit_bytes = 4 * kKiB;                       // the smallest buddy; a power of two
  std::vector<Bytes> fixed_sizes = {2 * kMiB, 20 * kMiB};  // ascending, at most a partition

  // Whether slots of `slot_bytes` consist of whole units and fill a partition up to a sixteenth.
  bool MayHaveSlotsOf(Bytes slot_bytes) const {
    constexpr Bytes kMaxLeftOver = 16;
    return slot_bytes > 0 && slot_bytes <= partition_bytes && slot_bytes % buddy_unit_bytes == 0 &&
           partition_bytes % slot_bytes <= partition_bytes / kMaxLeftOver;
  }
};

// The use of a partition: tier i < number of fixed sizes has slots of fixed_sizes[i], the next tier
// is the buddy system, kRun is the inside of a block larger than a partition.
using Tier = std::uint32_t;

// An arena divided into partitions of one size; each is free, of fixed slots, a buddy system, or
// part of a run. The first block taken in a free partition decides the tier; the release of the
// last block frees the partition. Mechanism only: the caller chooses partitions. Taking and
// releasing a block within one partition is O(log n). Not thread-safe.
//
// A block larger than a partition takes a run of whole neighbouring partitions and, for the
// remainder, the head of the next one, whose rest serves other blocks as a buddy partition.
class PartitionTable {
 public:
  using Index = std::uint32_t;
  static constexpr Tier kRun = ~Tier{0};
  static constexpr Tier kFree = ~Tier{0} - 1;

  // Rounds `arena_bytes` down to whole partitions, at least one.
  PartitionTable(Bytes arena_bytes, PartitionSizes sizes);

  // Returns the tier of the smallest slots that hold the block and are no larger than the block's
  // buddy would be; else the buddy tier, as buddies are trimmed; kRun for a block that one
  // partition cannot hold.
  Tier TierOf(const BlockRequest& request) const;
  // Whether a partition of the tier (not kRun) may hold the block.
  bool CanHold(Tier tier, const BlockRequest& request) const;
  // The room that a partition of the tier (not kRun) needs for the block: slots, or an order of
  // buddies.
  std::uint32_t RoomFor(Tier tier, const BlockRequest& request) const;

  // FindHome returns a partition with the room that the owner opened and still uses, FindShared a
  // partition of any owner; both prefer the fullest. FindFree returns the free partition with the
  // fewest free neighbours. nullopt if there is none.
  std::optional<Index> FindHome(Owner owner, Tier tier, std::uint32_t room) const;
  std::optional<Index> FindShared(Tier tier, std::uint32_t room) const;
  std::optional<Index> FindFree() const;

  // Takes a place in the partition, which is free or of that tier.
  std::optional<Block> TakeIn(Index index, Tier tier, const BlockRequest& request);
  // Takes a place in the fewest possible neighbouring free partitions.
  std::optional<Block> TakeRun(const BlockRequest& request);
  // Takes the place at `offset` if the block can have the place; a free partition gets the block's
  // tier.
  std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset);
  void Release(const BlockRequest& request, const Block& place);

  // Find… skip a hidden partition. Nothing may be taken or released there before Show.
  void Hide(Index index);
  void Show(Index index);

  const PartitionSizes& sizes() const { return sizes_; }
  Index partitions() const { return static_cast<Index>(partitions_.size()); }
  Index free_partitions() const { return free_partitions_; }
  Index IndexOf(Bytes offset) const { return static_cast<Index>(offset / sizes_.partition_bytes); }
  Tier tier(Index index) const { return partitions_[index].tier; }
  Tier buddy_tier() const { return static_cast<Tier>(sizes_.fixed_sizes.size()); }
  std::vector<Block> free_runs() const { return free_.blocks(); }  // in address order

  Bytes capacity() const { return partitions_.size() * sizes_.partition_bytes; }
  Bytes free_bytes() const { return free_partitions_ * sizes_.partition_bytes; }
  Bytes taken_bytes() const { return taken_bytes_; }
  Bytes largest_request() const;

 private:
  struct Partition {
    explicit Partition(std::uint32_t buddy_units) : buddies(buddy_units) {}

    Tier tier = kFree;
    std::uint32_t blocks = 0;
    std::unordered_map<Owner, std::uint32_t> blocks_of;
    std::optional<Owner> home;      // the owner that opened the partition and still uses it
    std::uint32_t listed_room = 0;  // as in the indices
    SlotMap slots{0};
    BuddyTree buddies;  // unused in other tiers
  };
  struct Homes {
    std::vector<RoomIndex> by_tier;
    std::uint32_t partitions = 0;
  };

  Bytes BeginOf(Index index) const { return index * sizes_.partition_bytes; }
  std::uint32_t Units(Bytes bytes) const;
  Bytes PlaceBytes(Tier tier, const BlockRequest& request) const;

  // Open gives a free partition a tier; Start does so for a partition already taken from free_;
  // Close frees an empty partition.
  void Open(Index index, Tier tier);
  void Start(Index index, Tier tier);
  void Close(Index index);
  // Counts the block of `place`, or closes the partition again if `place` is nullopt.
  std::optional<Block> Settle(Index index, const BlockRequest& request, std::optional<Block> place);
  void AddBlock(Index index, Owner owner);
  void RemoveBlock(Index index, Owner owner);
  void LeaveHome(Index index);
  void List(Index index, std::uint32_t room);
  std::uint32_t RoomOf(const Partition& partition) const;

  bool TakePart(Partition& partition, Tier tier, const BlockRequest& request,
                Bytes from_begin) const;
  std::optional<Block> TakeRunAt(const BlockRequest& request, Bytes offset);
  Block OpenRun(const BlockRequest& request, Bytes offset);
  void ReleaseRun(const BlockRequest& request, const Block& place);

  const PartitionSizes sizes_;
  std::vector<Partition> partitions_;
  FreeBlocks free_{0};  // whole partitions
  Index free_partitions_ = 0;
  Bytes taken_bytes_ = 0;
  std::vector<RoomIndex> rooms_;  // by tier
  std::unordered_map<Owner, Homes> homes_;
};

}  // namespace torpor::memory
