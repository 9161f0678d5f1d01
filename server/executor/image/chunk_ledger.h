#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace torpor::executor {

// Who holds which chunk of a pool, and which domain has used a free chunk last. A domain is whoever
// may see the bytes of one another. Not thread-safe.
class ChunkLedger {
 public:
  using Number = std::uint32_t;  // of a chunk, from 0
  using Domain = std::uint64_t;
  using Holder = std::uint64_t;

  // `chunks` chunks, free and never used.
  explicit ChunkLedger(std::size_t chunks);

  std::size_t free_chunks() const { return free_; }
  // Whether `holder` has a chunk. Takes time linear in the pool's chunks.
  bool Holds(Holder holder) const;

  struct Taken {
    std::vector<Number> chunks;
    std::size_t clean = 0;  // the first so many need no clearing; all others have another's bytes

    std::span<const Number> to_clear() const { return std::span(chunks).subspan(clean); }
  };
  // Gives `count` chunks, at most free_chunks(), to `holder`. Prefers chunks that `domain` has used
  // last, then chunks never used; of one kind, the most recently returned.
  Taken Take(Holder holder, Domain domain, std::size_t count);
  // Makes chunks of the last Take free, with the bytes that the chunks had before.
  void Undo(const Taken& taken);
  // Makes the chunks free; false, without any change, unless `holder` has each and no number comes
  // twice. Takes any numbers.
  bool Return(Holder holder, std::span<const Number> chunks);
  void ReturnAll(Holder holder);

 private:
  using LastUse = std::optional<Domain>;  // none: never used; ordered before all domains

  struct Chunk {
    std::optional<Holder> holder;  // none: free
    Domain domain = 0;             // of the holder
    LastUse last_use;              // before the holder's
  };

  // Moves free chunks of one kind, at most `count`, to the end of `taken`.
  void TakeOf(LastUse last_use, std::size_t count, std::vector<Number>& taken);
  void Free(Number number);

  std::vector<Chunk> chunks_;                           // by number
  std::map<LastUse, std::vector<Number>> by_last_use_;  // the free, none empty; next one last
  std::size_t free_ = 0;
};

}  // namespace torpor::executor
