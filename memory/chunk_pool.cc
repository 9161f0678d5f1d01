#include "memory/chunk_pool.h"

namespace torpor::memory {

void ChunkPool::Add(Chunk chunk) {
  free_.push_back(chunk);
  ++total_;
}

bool ChunkPool::Take(std::size_t count, std::vector<Chunk>& taken) {
  if (count > free_.size()) return false;
  const auto first = free_.end() - static_cast<std::ptrdiff_t>(count);
  taken.insert(taken.end(), first, free_.end());
  free_.erase(first, free_.end());
  return true;
}

void ChunkPool::Return(std::span<const Chunk> chunks) {
  free_.insert(free_.end(), chunks.begin(), chunks.end());
}

}  // namespace torpor::memory
