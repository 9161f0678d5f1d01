#include "memory/arena_allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace torpor::memory {

ArenaAllocator::ArenaAllocator(std::unique_ptr<Placement> placement)
    : placement_(std::move(placement)) {}

std::optional<Bytes> ArenaAllocator::Allocate(Owner owner, Bytes bytes, Bytes alignment) {
  TORPOR_CHECK(std::has_single_bit(alignment));
  if (bytes == 0 || bytes > placement_->capacity() || alignment > placement_->capacity()) {
    return std::nullopt;
  }
  const BlockRequest request{owner, bytes, alignment};
  const std::optional<Block> place = placement_->Take(request);
  if (!place) return std::nullopt;
  Insert({request, *place});
  return place->offset;
}

bool ArenaAllocator::Free(Bytes offset) {
  const auto live = blocks_.find(offset);
  if (live == blocks_.end()) return false;
  const PlacedBlock block = live->second.block;
  Erase(live->second);
  blocks_.erase(live);
  if (const auto move = moves_.find(offset); move != moves_.end()) {
    // A copy is under way: both places stay taken until the copy has ended.
    move->second.is_live = false;
    moving_ += block.place.bytes;
  } else {
    placement_->Release(block.request, block.place);
  }
  return true;
}

Bytes ArenaAllocator::FreeAll(Owner owner) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return 0;
  const Bytes used = found->second.used;
  for (const Bytes offset : std::vector<Bytes>(found->second.offsets)) Free(offset);
  return used;
}

std::optional<PlacedBlock> ArenaAllocator::Find(Bytes offset) const {
  const auto live = blocks_.find(offset);
  if (live == blocks_.end()) return std::nullopt;
  return live->second.block;
}

std::vector<PlacedBlock> ArenaAllocator::BlocksOf(Owner owner) const {
  std::vector<PlacedBlock> blocks;
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return blocks;
  blocks.reserve(found->second.offsets.size());
  for (const Bytes offset : found->second.offsets) blocks.push_back(blocks_.at(offset).block);
  return blocks;
}

std::vector<PlacedBlock> ArenaAllocator::AllBlocks() const {
  std::vector<PlacedBlock> blocks;
  blocks.reserve(blocks_.size());
  for (const auto& [offset, live] : blocks_) blocks.push_back(live.block);
  std::sort(blocks.begin(), blocks.end(), [](const PlacedBlock& a, const PlacedBlock& b) {
    return a.place.offset < b.place.offset;
  });
  return blocks;
}

Bytes ArenaAllocator::used_by(Owner owner) const {
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.used;
}

ArenaUse ArenaAllocator::use() const {
  return {.capacity = placement_->capacity(),
          .used = used_,
          .padding = placed_ - used_,
          .moving = moving_,
          .cached = placement_->cached_bytes(),
          .free = placement_->free_bytes(),
          .largest_request = placement_->largest_request()};
}

std::vector<Move> ArenaAllocator::PlanMoves(
    Bytes max_bytes, const std::function<bool(const PlacedBlock&)>& may_move) {
  if (!moves_.empty()) return {};
  std::vector<PlacedBlock> blocks = AllBlocks();
  for (PlacedBlock& block : blocks) block.may_move = !may_move || may_move(block);
  return placement_->PlanMoves(blocks, max_bytes);
}

bool ArenaAllocator::BeginMove(const Move& move) {
  const auto live = blocks_.find(move.from);
  if (live == blocks_.end() || moves_.contains(move.from)) return false;
  const PlacedBlock& block = live->second.block;
  if (block.request.owner != move.owner || block.request.bytes != move.bytes) return false;
  const std::optional<Block> target = placement_->TakeAt(block.request, move.to);
  if (!target) return false;
  moving_ += target->bytes;
  moves_.emplace(move.from, MoveUnderWay{block, *target});
  return true;
}

bool ArenaAllocator::CommitMove(Bytes from) {
  const auto found = moves_.find(from);
  TORPOR_CHECK(found != moves_.end());
  const MoveUnderWay move = found->second;
  if (!move.is_live) {
    AbandonMove(from);
    return false;
  }
  moves_.erase(found);
  moving_ -= move.target.bytes;
  auto live = blocks_.extract(from);
  LiveBlock& block = live.mapped();
  placed_ += move.target.bytes - move.source.place.bytes;
  block.block.place = move.target;
  owners_.at(move.source.request.owner).offsets[block.position] = move.target.offset;
  live.key() = move.target.offset;
  blocks_.insert(std::move(live));
  placement_->Release(move.source.request, move.source.place);
  return true;
}

void ArenaAllocator::AbandonMove(Bytes from) {
  const auto found = moves_.find(from);
  TORPOR_CHECK(found != moves_.end());
  const MoveUnderWay move = found->second;
  moves_.erase(found);
  moving_ -= move.target.bytes;
  placement_->Release(move.source.request, move.target);
  if (move.is_live) return;
  moving_ -= move.source.place.bytes;
  placement_->Release(move.source.request, move.source.place);
}

void ArenaAllocator::Insert(const PlacedBlock& block) {
  OwnerBlocks& owner = owners_[block.request.owner];
  blocks_.emplace(block.place.offset, LiveBlock{block, owner.offsets.size()});
  owner.offsets.push_back(block.place.offset);
  owner.used += block.request.bytes;
  used_ += block.request.bytes;
  placed_ += block.place.bytes;
}

void ArenaAllocator::Erase(const LiveBlock& live) {
  const BlockRequest& request = live.block.request;
  const auto owner = owners_.find(request.owner);
  std::vector<Bytes>& offsets = owner->second.offsets;
  offsets[live.position] = offsets.back();
  blocks_.at(offsets.back()).position = live.position;
  offsets.pop_back();
  owner->second.used -= request.bytes;
  used_ -= request.bytes;
  placed_ -= live.block.place.bytes;
  if (offsets.empty()) owners_.erase(owner);
}

}  // namespace torpor::memory
