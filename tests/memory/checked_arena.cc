#include "tests/memory/checked_arena.h"

#include <algorithm>
#include <set>
#include <utility>

#include "memory/tiered_placement.h"
#include "memory/trace/single_pool.h"

namespace torpor::memory {

CheckedArena::CheckedArena(std::unique_ptr<Placement> placement, Bytes partition_bytes)
    : partition_bytes_(partition_bytes),
      allocator_(std::move(placement)),
      held_(allocator_.use().capacity / kCellBytes),
      contents_(held_.size()) {}

void CheckedArena::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

void CheckedArena::Hold(const Block& place) {
  if (place.bytes == 0 || place.end() > allocator_.use().capacity) return Fail("outside");
  if (place.offset % kCellBytes != 0 || place.bytes % kCellBytes != 0) return Fail("granularity");
  for (Bytes cell = place.offset / kCellBytes; cell < place.end() / kCellBytes; ++cell) {
    if (held_[cell]) Fail("overlap");
    held_[cell] = true;
  }
}

void CheckedArena::LetGo(const Block& place) {
  for (Bytes cell = place.offset / kCellBytes; cell < place.end() / kCellBytes; ++cell) {
    held_[cell] = false;
  }
}

std::optional<Bytes> CheckedArena::Allocate(Owner owner, Bytes bytes, Bytes alignment) {
  const Bytes largest = allocator_.use().largest_request;
  const std::optional<Bytes> offset = allocator_.Allocate(owner, bytes, alignment);
  if (!offset) {
    if (alignment == 1 && bytes > 0 && bytes <= largest) Fail("refused what it had");
    return offset;
  }
  const std::optional<PlacedBlock> block = allocator_.Find(*offset);
  if (!block) {
    Fail("a new block is not found");
    return offset;
  }
  if (bytes == 0 || bytes > largest) Fail("gave more than it had");
  if (block->place.bytes < bytes) Fail("too small a place");
  if (*offset % alignment != 0) Fail("alignment");
  Hold(block->place);
  if (!error_.empty()) return offset;
  live_[*offset] = {owner, bytes, alignment};
  marks_[*offset] = next_mark_++;
  std::fill_n(contents_.begin() + static_cast<std::ptrdiff_t>(*offset / kCellBytes),
              (bytes + kCellBytes - 1) / kCellBytes, marks_[*offset]);
  return offset;
}

void CheckedArena::Free(Bytes offset) {
  const std::optional<PlacedBlock> block = allocator_.Find(offset);
  if (allocator_.Free(offset) != (live_.erase(offset) > 0)) Fail("freed what is no block");
  if (!block) return;
  marks_.erase(offset);
  for (MoveUnderWay& move : moves_) {
    if (move.is_live && move.move.from == offset) {
      move.is_live = false;
      return;
    }
  }
  LetGo(block->place);
}

void CheckedArena::FreeAll(Owner owner) {
  Bytes expected = 0;
  std::vector<Block> places;
  for (auto it = live_.begin(); it != live_.end();) {
    if (it->second.owner != owner) {
      ++it;
      continue;
    }
    expected += it->second.bytes;
    const Bytes offset = it->first;
    const auto moving = std::find_if(moves_.begin(), moves_.end(), [&](const MoveUnderWay& move) {
      return move.is_live && move.move.from == offset;
    });
    if (moving == moves_.end()) {
      LetGo(allocator_.Find(offset)->place);
    } else {
      moving->is_live = false;
    }
    marks_.erase(offset);
    it = live_.erase(it);
  }
  if (allocator_.FreeAll(owner) != expected) Fail("what was freed of an owner");
}

void CheckedArena::BeginMoves(Bytes max_bytes, std::size_t count) {
  if (!moves_.empty()) return;
  const ArenaUse before = allocator_.use();
  Bytes sum = 0;
  for (const Move& move : allocator_.PlanMoves(max_bytes)) {
    const std::optional<PlacedBlock> block = allocator_.Find(move.from);
    if (!block || block->request.bytes != move.bytes) return Fail("a plan of no block");
    sum += move.bytes;
    if (moves_.size() == count) continue;
    if (!allocator_.BeginMove(move)) return Fail("a plan that cannot be carried out");
    if (allocator_.BeginMove(move)) Fail("moved twice at once");
    // What is there behind the block's bytes is seen when it has arrived.
    const Block target = {move.to, RoundUp(move.bytes, kCellBytes)};
    Hold(target);
    moves_.push_back({move, block->place, target});
  }
  if (sum > max_bytes) Fail("a plan of too many bytes");
  if (moves_.empty() && allocator_.use().cached != before.cached) Fail("a plan changed something");
}

void CheckedArena::CommitMove() {
  if (moves_.empty()) return;
  const MoveUnderWay under_way = moves_.front();
  const auto [move, source, target, is_live] = under_way;
  const auto cells = static_cast<std::ptrdiff_t>((move.bytes + kCellBytes - 1) / kCellBytes);
  const auto from = contents_.begin() + static_cast<std::ptrdiff_t>(move.from / kCellBytes);
  const auto to = contents_.begin() + static_cast<std::ptrdiff_t>(move.to / kCellBytes);
  std::copy(from, from + cells, to);
  if (allocator_.CommitMove(move.from) != is_live) Fail("whether the moved block lives");
  if (!is_live) return ForgetMove();
  LetGo(source);
  const auto request = live_.extract(move.from);
  const auto mark = marks_.extract(move.from);
  live_.emplace(move.to, request.mapped());
  marks_.emplace(move.to, mark.mapped());
  const std::optional<PlacedBlock> block = allocator_.Find(move.to);
  if (!block) return Fail("a moved block is not found");
  LetGo(target);
  Hold(block->place);
  moves_.erase(moves_.begin());
}

void CheckedArena::AbandonMove() {
  if (moves_.empty()) return;
  allocator_.AbandonMove(moves_.front().move.from);
  ForgetMove();
}

void CheckedArena::ForgetMove() {
  LetGo(moves_.front().target);
  if (!moves_.front().is_live) LetGo(moves_.front().source);
  moves_.erase(moves_.begin());
}

void CheckedArena::EndAllMoves() {
  while (!moves_.empty() && error_.empty()) CommitMove();
}

std::size_t CheckedArena::Consolidate() {
  std::size_t count = 0;
  while (error_.empty()) {
    const Bytes free_before = allocator_.use().free;
    BeginMoves(~Bytes{0}, ~std::size_t{0});
    if (moves_.empty()) return count;
    count += moves_.size();
    if (count > 100'000) Fail("consolidation has no end");
    EndAllMoves();
    if (allocator_.use().free < free_before) Fail("a plan that leaves less free");
  }
  return count;
}

bool CheckedArena::HasItsBytes(const PlacedBlock& block) const {
  const Bytes first = block.place.offset / kCellBytes;
  const Bytes cells = (block.request.bytes + kCellBytes - 1) / kCellBytes;
  for (Bytes cell = first; cell < first + cells; ++cell) {
    if (contents_[cell] != marks_.at(block.place.offset)) return false;
  }
  return true;
}

void CheckedArena::CheckBlocks(ArenaUse& expected) {
  const std::vector<PlacedBlock> blocks = allocator_.AllBlocks();
  if (blocks.size() != live_.size() || allocator_.block_count() != live_.size()) {
    return Fail("number of blocks");
  }
  for (const PlacedBlock& block : blocks) {
    const auto live = live_.find(block.place.offset);
    if (live == live_.end() || live->second.owner != block.request.owner ||
        live->second.bytes != block.request.bytes) {
      return Fail("a block that is none");
    }
    if (!HasItsBytes(block)) return Fail("a block's bytes");
    expected.used += block.request.bytes;
    expected.padding += block.place.bytes - block.request.bytes;
  }
}

void CheckedArena::CheckOwners() {
  std::map<Owner, std::pair<Bytes, std::size_t>> owners;
  for (const auto& [offset, request] : live_) {
    owners[request.owner].first += request.bytes;
    ++owners[request.owner].second;
  }
  for (const auto& [owner, sums] : owners) {
    if (allocator_.used_by(owner) != sums.first) return Fail("an owner's bytes");
    if (allocator_.BlocksOf(owner).size() != sums.second) return Fail("an owner's blocks");
  }
}

void CheckedArena::CheckPartitions(const ArenaUse& use) {
  if (partition_bytes_ == 0) return;
  std::set<Bytes> touched;
  for (Bytes cell = 0; cell < held_.size(); ++cell) {
    if (held_[cell]) touched.insert(cell * kCellBytes / partition_bytes_);
  }
  if (use.free != use.capacity - touched.size() * partition_bytes_) {
    Fail("partitions that nobody uses are not free");
  }
}

void CheckedArena::Check() {
  if (!error_.empty()) return;
  const ArenaUse use = allocator_.use();
  ArenaUse expected;
  CheckBlocks(expected);
  CheckOwners();
  if (use.used != expected.used) Fail("used");
  if (use.padding != expected.padding) Fail("padding");
  if (moves_.empty() != (use.moving == 0)) Fail("moving");
  if (use.used + use.padding + use.moving + use.cached + use.free != use.capacity) Fail("the sum");
  if (use.largest_request > use.cached + use.free) Fail("largest request");
  if (live_.empty() && moves_.empty() && use.fragmented() != 0) Fail("not all coalesced");
  CheckPartitions(use);
}

const std::vector<ArenaKind>& ArenaKinds() {
  static const auto* const kinds = new std::vector<ArenaKind>{
      {"Tiers", 64 * kKiB, true,
       []() -> std::unique_ptr<Placement> {
         return std::make_unique<TieredPlacement>(
             kTestArenaBytes, PartitionSizes{64 * kKiB, 512, {2 * kKiB, 20 * kKiB}});
       }},
      {"BuddiesOnly", 32 * kKiB, true,
       []() -> std::unique_ptr<Placement> {
         return std::make_unique<TieredPlacement>(kTestArenaBytes,
                                                  PartitionSizes{32 * kKiB, 1024, {}});
       }},
      {"OnePartition", kTestArenaBytes, false,
       []() -> std::unique_ptr<Placement> {
         return std::make_unique<TieredPlacement>(kTestArenaBytes,
                                                  PartitionSizes{kTestArenaBytes, 512, {}});
       }},
      {"SinglePool", 0, false, []() -> std::unique_ptr<Placement> {
         return std::make_unique<SinglePool>(std::make_unique<ArenaSource>(kTestArenaBytes));
       }}};
  return *kinds;
}

}  // namespace torpor::memory
