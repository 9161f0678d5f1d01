#include "memory/partition_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace torpor::memory {
namespace {

// Slots lie side by side from the partition's begin on.
Bytes SlotAlignment(Bytes slot_bytes) { return slot_bytes & (~slot_bytes + 1); }

PartitionSizes Checked(PartitionSizes sizes) {
  const std::vector<Bytes>& fixed = sizes.fixed_sizes;
  TORPOR_CHECK(std::has_single_bit(sizes.partition_bytes));
  TORPOR_CHECK(std::has_single_bit(sizes.buddy_unit_bytes));
  TORPOR_CHECK(sizes.buddy_unit_bytes <= sizes.partition_bytes);
  TORPOR_CHECK(std::is_sorted(fixed.begin(), fixed.end()));
  TORPOR_CHECK(fixed.empty() || (fixed.front() > 0 && fixed.back() <= sizes.partition_bytes));
  return sizes;
}

}  // namespace

PartitionTable::PartitionTable(Bytes arena_bytes, PartitionSizes sizes)
    : sizes_(Checked(std::move(sizes))),
      partitions_(arena_bytes / sizes_.partition_bytes, Partition(Units(sizes_.partition_bytes))),
      free_partitions_(partitions()),
      rooms_(sizes_.fixed_sizes.size() + 1) {
  TORPOR_CHECK(!partitions_.empty());
  free_.Add({0, capacity()});
}

Tier PartitionTable::TierOf(const BlockRequest& request) const {
  if (std::max(request.bytes, request.alignment) > sizes_.partition_bytes) return kRun;
  const Bytes buddy_bytes = std::bit_ceil(request.bytes);
  for (Tier tier = 0; tier < buddy_tier(); ++tier) {
    const Bytes slot_bytes = sizes_.fixed_sizes[tier];
    if (slot_bytes <= buddy_bytes && CanHold(tier, request)) return tier;
  }
  return buddy_tier();
}

bool PartitionTable::CanHold(Tier tier, const BlockRequest& request) const {
  const Bytes place_bytes = tier < buddy_tier() ? sizes_.fixed_sizes[tier] : sizes_.partition_bytes;
  return request.bytes <= place_bytes && request.alignment <= SlotAlignment(place_bytes);
}

std::uint32_t PartitionTable::RoomFor(Tier tier, const BlockRequest& request) const {
  if (tier != buddy_tier()) return 1;
  return BuddyTree::OrderFor(Units(request.bytes), Units(request.alignment));
}

std::optional<PartitionTable::Index> PartitionTable::FindHome(Owner owner, Tier tier,
                                                              std::uint32_t room) const {
  const auto homes = homes_.find(owner);
  if (homes == homes_.end()) return std::nullopt;
  return homes->second.by_tier[tier].Find(room);
}

std::optional<PartitionTable::Index> PartitionTable::FindShared(Tier tier,
                                                                std::uint32_t room) const {
  return rooms_[tier].Find(room);
}

std::optional<PartitionTable::Index> PartitionTable::FindFree() const {
  const std::optional<Block> run = free_.smallest();
  if (!run) return std::nullopt;
  return IndexOf(run->offset);
}

std::optional<Block> PartitionTable::TakeIn(Index index, Tier tier, const BlockRequest& request) {
  Partition& partition = partitions_[index];
  if (partition.tier == kFree) Open(index, tier);
  std::optional<Block> place;
  if (tier == buddy_tier()) {
    const std::uint32_t units = Units(request.bytes);
    if (const auto unit = partition.buddies.Take(units, Units(request.alignment))) {
      place =
          Block{BeginOf(index) + *unit * sizes_.buddy_unit_bytes, units * sizes_.buddy_unit_bytes};
    }
  } else if (const auto slot = partition.slots.Take()) {
    const Bytes slot_bytes = sizes_.fixed_sizes[tier];
    place = Block{BeginOf(index) + *slot * slot_bytes, slot_bytes};
  }
  return Settle(index, request, place);
}

std::optional<Block> PartitionTable::Settle(Index index, const BlockRequest& request,
                                            std::optional<Block> place) {
  if (place) {
    taken_bytes_ += place->bytes;
    AddBlock(index, request.owner);
  } else if (partitions_[index].blocks == 0) {
    Close(index);
  }
  return place;
}

std::optional<Block> PartitionTable::TakeRun(const BlockRequest& request) {
  const Bytes whole_bytes = RoundUp(request.bytes, sizes_.partition_bytes);
  const Bytes alignment = std::max(request.alignment, sizes_.partition_bytes);
  const std::optional<Block> run = free_.Take(whole_bytes, alignment);
  if (!run) return std::nullopt;
  return OpenRun(request, run->offset);
}

std::optional<Block> PartitionTable::TakeAt(const BlockRequest& request, Bytes offset) {
  if (offset >= capacity() || offset % request.alignment != 0) return std::nullopt;
  const Tier best_tier = TierOf(request);
  if (best_tier == kRun) return TakeRunAt(request, offset);

  const Index index = IndexOf(offset);
  Partition& partition = partitions_[index];
  if (partition.tier == kFree) Open(index, best_tier);
  const Tier tier = partition.tier;
  if (tier == kRun || !CanHold(tier, request)) return std::nullopt;
  std::optional<Block> place{{offset, PlaceBytes(tier, request)}};
  if (!TakePart(partition, tier, request, offset - BeginOf(index))) place.reset();
  return Settle(index, request, place);
}

Bytes PartitionTable::PlaceBytes(Tier tier, const BlockRequest& request) const {
  if (tier < buddy_tier()) return sizes_.fixed_sizes[tier];
  return RoundUp(request.bytes, sizes_.buddy_unit_bytes);
}

bool PartitionTable::TakePart(Partition& partition, Tier tier, const BlockRequest& request,
                              Bytes from_begin) const {
  if (tier < buddy_tier()) {
    const Bytes slot_bytes = sizes_.fixed_sizes[tier];
    return from_begin % slot_bytes == 0 &&
           partition.slots.TakeAt(static_cast<std::uint32_t>(from_begin / slot_bytes));
  }
  const Bytes buddy_bytes = std::max(std::bit_ceil(request.bytes), sizes_.buddy_unit_bytes);
  return from_begin % buddy_bytes == 0 &&
         partition.buddies.TakeAt(Units(from_begin), Units(request.bytes));
}

std::optional<Block> PartitionTable::TakeRunAt(const BlockRequest& request, Bytes offset) {
  if (offset % sizes_.partition_bytes != 0 || request.bytes > capacity() - offset) {
    return std::nullopt;
  }
  if (!free_.TakeAt({offset, RoundUp(request.bytes, sizes_.partition_bytes)})) return std::nullopt;
  return OpenRun(request, offset);
}

Block PartitionTable::OpenRun(const BlockRequest& request, Bytes offset) {
  const Index end = IndexOf(offset + request.bytes);
  for (Index index = IndexOf(offset); index < end; ++index) {
    partitions_[index].tier = kRun;
    partitions_[index].blocks = 1;
    --free_partitions_;
  }
  const Block place = {offset, PlaceBytes(kRun, request)};
  taken_bytes_ += place.bytes;
  if (const Bytes rest = place.end() - BeginOf(end); rest > 0) {
    Start(end, buddy_tier());
    partitions_[end].buddies.TakeAt(0, Units(rest));
    AddBlock(end, request.owner);
  }
  return place;
}

void PartitionTable::Release(const BlockRequest& request, const Block& place) {
  taken_bytes_ -= place.bytes;
  if (TierOf(request) == kRun) return ReleaseRun(request, place);
  const Index index = IndexOf(place.offset);
  const Bytes from_begin = place.offset - BeginOf(index);
  if (partitions_[index].tier == buddy_tier()) {
    partitions_[index].buddies.Release(Units(from_begin), Units(place.bytes));
  } else {
    partitions_[index].slots.Release(static_cast<std::uint32_t>(from_begin / place.bytes));
  }
  RemoveBlock(index, request.owner);
}

void PartitionTable::ReleaseRun(const BlockRequest& request, const Block& place) {
  const Index end = IndexOf(place.offset + request.bytes);
  for (Index index = IndexOf(place.offset); index < end; ++index) {
    partitions_[index].blocks = 0;
    Close(index);
  }
  if (const Bytes rest = place.end() - BeginOf(end); rest > 0) {
    partitions_[end].buddies.Release(0, Units(rest));
    RemoveBlock(end, request.owner);
  }
}

void PartitionTable::Open(Index index, Tier tier) {
  free_.TakeAt({BeginOf(index), sizes_.partition_bytes});
  Start(index, tier);
}

void PartitionTable::Start(Index index, Tier tier) {
  Partition& partition = partitions_[index];
  partition.tier = tier;
  if (tier < buddy_tier()) {
    partition.slots =
        SlotMap(static_cast<std::uint32_t>(sizes_.partition_bytes / sizes_.fixed_sizes[tier]));
  }
  --free_partitions_;
}

void PartitionTable::Close(Index index) {
  Partition& partition = partitions_[index];
  if (partition.tier != kRun) List(index, 0);
  partition.tier = kFree;
  free_.Add({BeginOf(index), sizes_.partition_bytes});
  ++free_partitions_;
}

void PartitionTable::AddBlock(Index index, Owner owner) {
  Partition& partition = partitions_[index];
  ++partition.blocks;
  ++partition.blocks_of[owner];
  if (!partition.home) {
    partition.home = owner;
    Homes& homes = homes_[owner];
    homes.by_tier.resize(rooms_.size());
    ++homes.partitions;
    homes.by_tier[partition.tier].Change(index, 0, partition.listed_room);
  }
  List(index, RoomOf(partition));
}

void PartitionTable::RemoveBlock(Index index, Owner owner) {
  Partition& partition = partitions_[index];
  --partition.blocks;
  const auto of_owner = partition.blocks_of.find(owner);
  if (--of_owner->second == 0) {
    partition.blocks_of.erase(of_owner);
    if (partition.home == owner) LeaveHome(index);
  }
  if (partition.blocks == 0) {
    Close(index);
  } else {
    List(index, RoomOf(partition));
  }
}

void PartitionTable::LeaveHome(Index index) {
  Partition& partition = partitions_[index];
  const auto homes = homes_.find(*partition.home);
  homes->second.by_tier[partition.tier].Change(index, partition.listed_room, 0);
  if (--homes->second.partitions == 0) homes_.erase(homes);
  partition.home.reset();
}

void PartitionTable::List(Index index, std::uint32_t room) {
  Partition& partition = partitions_[index];
  if (partition.listed_room == room) return;
  rooms_[partition.tier].Change(index, partition.listed_room, room);
  if (partition.home) {
    homes_.at(*partition.home).by_tier[partition.tier].Change(index, partition.listed_room, room);
  }
  partition.listed_room = room;
}

void PartitionTable::Hide(Index index) { List(index, 0); }

void PartitionTable::Show(Index index) { List(index, RoomOf(partitions_[index])); }

std::uint32_t PartitionTable::RoomOf(const Partition& partition) const {
  return partition.tier == buddy_tier() ? partition.buddies.largest_order()
                                        : partition.slots.free_slots();
}

Bytes PartitionTable::largest_request() const {
  Bytes largest = free_.largest_bytes();
  for (Tier tier = 0; tier < buddy_tier(); ++tier) {
    if (rooms_[tier].largest_room() > 0) largest = std::max(largest, sizes_.fixed_sizes[tier]);
  }
  if (const std::uint32_t order = rooms_[buddy_tier()].largest_room(); order > 0) {
    largest = std::max(largest, sizes_.buddy_unit_bytes << (order - 1));
  }
  return largest;
}

std::uint32_t PartitionTable::Units(Bytes bytes) const {
  return static_cast<std::uint32_t>((bytes + sizes_.buddy_unit_bytes - 1) /
                                    sizes_.buddy_unit_bytes);
}

}  // namespace torpor::memory
