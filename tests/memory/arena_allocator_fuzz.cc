#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/memory/checked_arena.h"

namespace torpor::memory {
namespace {

struct Step {
  std::uint8_t kind;
  std::uint8_t owner;
  std::uint8_t alignment;
  std::uint8_t shift;
  std::uint32_t value;
};

void Apply(const Step& step, CheckedArena& arena) {
  const Owner owner{step.owner % 8u + 1};
  switch (step.kind % 9) {
    case 0:
    case 1:
      arena.Allocate(owner, step.value >> step.shift % 32, Bytes{1} << step.alignment % 22);
      return;
    case 2:
      return arena.Free(step.value);
    case 3:
      if (arena.live().empty()) return;
      return arena.Free(std::next(arena.live().begin(),
                                  static_cast<std::ptrdiff_t>(step.value % arena.live().size()))
                            ->first);
    case 4:
      return arena.FreeAll(owner);
    case 5:
      return arena.BeginMoves(step.value, step.alignment);
    case 6:
      return arena.CommitMove();
    case 7:
      return arena.AbandonMove();
    default:
      arena.Consolidate();
      return;
  }
}

void RunSteps(const ArenaKind& kind, const std::uint8_t* data, std::size_t size) {
  CheckedArena arena(kind.make(), kind.partition_bytes);
  for (; size >= sizeof(Step); data += sizeof(Step), size -= sizeof(Step)) {
    Step step;
    std::memcpy(&step, data, sizeof step);
    Apply(step, arena);
    arena.Check();
    if (arena.error().empty()) continue;
    std::fprintf(stderr, "%s: %s\n", kind.name.c_str(), arena.error().c_str());
    std::abort();
  }
}

}  // namespace
}  // namespace torpor::memory

// Any sequence of allocations, frees and moves keeps every allocator's invariants, after every
// step.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto& kinds = torpor::memory::ArenaKinds();
  torpor::memory::RunSteps(kinds[data[0] % kinds.size()], data + 1, size - 1);
  return 0;
}
