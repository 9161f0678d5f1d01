#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace torpor::memory {

// Which physical chunks of a GPU are free. A chunk is whatever the caller names by 64 bits (a
// handle of the driver). Not thread-safe.
class ChunkPool {
 public:
  using Chunk = unsigned long long;

  // A new chunk, free.
  void Add(Chunk chunk);

  // Appends `count` free chunks to `taken`; or takes none and gives false.
  bool Take(std::size_t count, std::vector<Chunk>& taken);

  // Chunks that Take gave out are free again. The most recently used are taken first: their
  // page-table entries and, on the emulator, their pages are warm.
  void Return(std::span<const Chunk> chunks);

  std::size_t free_chunks() const { return free_.size(); }
  std::size_t total_chunks() const { return total_; }

 private:
  std::vector<Chunk> free_;
  std::size_t total_ = 0;
};

}  // namespace torpor::memory
