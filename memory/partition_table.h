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

struct PartitionSizes {
  Bytes partition_bytes = 64 * kMiB;                       // a power of two
  Bytes buddy_unit_bytes = 4 * kKiB;                       // the smallest buddy; a power of two
  std::vector<Bytes> fixed_sizes = {2 * kMiB, 20 * kMiB};  // ascending, at most a partition

  // Whether slots of that size consist of whole units and fill a partition but for a sixteenth.
  bool MayHaveSlotsOf(Bytes slot_bytes) const {
    constexpr Bytes kMaxLeftOver = 16;
    return slot_bytes > 0 && slot_bytes <= partition_bytes && slot_bytes % buddy_unit_bytes == 0 &&
           partition_bytes % slot_bytes <= partition_bytes / kMaxLeftOver;
  }
};

// What partitions are used for: tier i < fixed sizes holds blocks of that size, the next one is
// the buddy system, kRun is the inside of a block that is larger than a partition.
using Tier = std::uint32_t;

// An arena divided into partitions of one size, and what each of them is: free, of fixed slots,
// a buddy system, or part of a run. A partition becomes of a tier as the first block is taken in
// it and is free as its last block is released. Mechanism only: which partition is taken is the
// caller's choice. Taking and releasing a block that one partition holds is O(log n).
//
// A block that is larger than a partition has neighbouring ones: a run of whole partitions and,
// for what is left, the head of the next, which is a buddy partition to everybody else.
class PartitionTable {
 public:
  using Index = std::uint32_t;
  static constexpr Tier kRun = ~Tier{0};
  static constexpr Tier kFree = ~Tier{0} - 1;

  // `arena_bytes` is rounded down to partitions, of which there is at least one.
  PartitionTable(Bytes arena_bytes, PartitionSizes sizes);

  // The first slots that hold the block and are no larger than the buddy that it would begin in;
  // else the buddies, which are trimmed. kRun for what one partition cannot hold.
  Tier TierOf(const BlockRequest& request) const;
  // Whether a partition of the tier, not kRun, may hold the block.
  bool CanHold(Tier tier, const BlockRequest& request) const;
  // The room that a partition of the tier must have for the block; not for runs.
  std::uint32_t RoomFor(Tier tier, const BlockRequest& request) const;

  // A partition with the room that the owner was the first to take, and still uses; one of
  // anybody; a free one, that beside the fewest other free ones. The first two prefer the fullest.
  std::optional<Index> FindHome(Owner owner, Tier tier, std::uint32_t room) const;
  std::optional<Index> FindShared(Tier tier, std::uint32_t room) const;
  std::optional<Index> FindFree() const;

  // A place in the partition, which is free or of that tier.
  std::optional<Block> TakeIn(Index index, Tier tier, const BlockRequest& request);
  // A place in the fewest neighbouring free partitions.
  std::optional<Block> TakeRun(const BlockRequest& request);
  // The place that begins at `offset`, where the block can have that; a free partition becomes of
  // the block's tier.
  std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset);
  void Release(const BlockRequest& request, const Block& place);

  // A hidden partition is not found. Until it is shown again nothing is taken or released in it.
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
    std::optional<Owner> home;      // the owner that it is kept for
    std::uint32_t listed_room = 0;  // as in the indices
    SlotMap slots{0};
    BuddyTree buddies;  // of a partition of another tier: untouched
  };
  struct Homes {
    std::vector<RoomIndex> by_tier;
    std::uint32_t partitions = 0;
  };

  Bytes BeginOf(Index index) const { return index * sizes_.partition_bytes; }
  std::uint32_t Units(Bytes bytes) const;
  Bytes PlaceBytes(Tier tier, const BlockRequest& request) const;

  // A free partition becomes of a tier; Start: one that free_ has no longer. Close: it is empty.
  void Open(Index index, Tier tier);
  void Start(Index index, Tier tier);
  void Close(Index index);
  // Counts a block that was taken in the partition, or closes it again.
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
