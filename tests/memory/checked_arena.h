#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "memory/arena_allocator.h"

namespace torpor::memory {

// An ArenaAllocator, the same bookkeeping done naively beside it, and the bytes of the arena, a
// word for each kCellBytes: every place has one holder, a block keeps its words wherever it is
// moved, and every byte is accounted for. Says what the allocator has done wrong first.
class CheckedArena {
 public:
  static constexpr Bytes kCellBytes = 512;

  // `partition_bytes` 0: the placement has none.
  CheckedArena(std::unique_ptr<Placement> placement, Bytes partition_bytes);

  std::optional<Bytes> Allocate(Owner owner, Bytes bytes, Bytes alignment);
  void Free(Bytes offset);
  void FreeAll(Owner owner);
  // Plans moves and begins the first `count`; how each ends is the caller's choice.
  void BeginMoves(Bytes max_bytes, std::size_t count);
  void CommitMove();   // the oldest under way; the bytes are copied first
  void AbandonMove();  // the same
  void EndAllMoves();
  // Consolidates until there is nothing more to move; gives the number of moves.
  std::size_t Consolidate();

  // Compares all that can be seen.
  void Check();
  // Empty as long as all is well.
  const std::string& error() const { return error_; }

  const ArenaAllocator& allocator() const { return allocator_; }
  const std::map<Bytes, BlockRequest>& live() const { return live_; }

 private:
  void Fail(const std::string& what);
  void Hold(const Block& place);
  void LetGo(const Block& place);
  bool HasItsBytes(const PlacedBlock& block) const;
  void CheckBlocks(ArenaUse& expected);
  void CheckOwners();
  void CheckPartitions(const ArenaUse& use);
  void ForgetMove();

  struct MoveUnderWay {
    Move move;
    Block source;
    Block target;
    bool is_live = true;
  };

  const Bytes partition_bytes_;
  ArenaAllocator allocator_;
  std::vector<bool> held_;               // by cell
  std::vector<std::uint32_t> contents_;  // by cell
  std::map<Bytes, BlockRequest> live_;
  std::map<Bytes, std::uint32_t> marks_;  // what is in a live block's cells
  std::vector<MoveUnderWay> moves_;
  std::uint32_t next_mark_ = 1;
  std::string error_;
};

// Allocators for tests: an arena of 1 MiB, partitions of 64 KiB with slots of 2 and 20 KiB.
struct ArenaKind {
  std::string name;
  Bytes partition_bytes;
  bool moves;  // blocks can be moved at all
  std::unique_ptr<Placement> (*make)();

  friend void PrintTo(const ArenaKind& kind, std::ostream* out) { *out << kind.name; }
};
const std::vector<ArenaKind>& ArenaKinds();
inline constexpr Bytes kTestArenaBytes = 1 * kMiB;

}  // namespace torpor::memory
