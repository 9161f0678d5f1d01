#include "memory/block_states.h"

#include <algorithm>
#include <atomic>

namespace torpor::memory {
namespace {

// Layout of a word: the origin, a bit for a known hash, the hash's upper bits.
constexpr std::uint64_t kOriginMask = 3;
constexpr std::uint64_t kIsKnown = 4;
constexpr std::uint64_t kHashMask = ~std::uint64_t{7};

constexpr std::uint64_t WithOrigin(std::uint64_t word, BlockOrigin origin) {
  return (word & ~kOriginMask) | static_cast<std::uint64_t>(origin);
}

}  // namespace

BlockStates::BlockStates(std::span<std::uint64_t> words, Bytes block_bytes)
    : words_(words), block_bytes_(block_bytes) {}

// Atomic, as another executor that maps the session's memory may read at the same time.
std::uint64_t BlockStates::Load(std::size_t block) const {
  return std::atomic_ref(words_[block]).load(std::memory_order_relaxed);
}

void BlockStates::Store(std::size_t block, std::uint64_t word) {
  std::atomic_ref(words_[block]).store(word, std::memory_order_relaxed);
}

bool BlockStates::IsInStep(std::size_t block, std::uint64_t hash) const {
  return (Load(block) & ~kOriginMask) == ((hash & kHashMask) | kIsKnown);
}

void BlockStates::NoteChanged(std::size_t block) {
  const std::uint64_t word = Load(block);
  BlockOrigin origin = BlockStates::origin(block);
  if (origin == BlockOrigin::kUntouched) origin = BlockOrigin::kScratch;
  // If the hash is unknown, the reason is the upload itself.
  if (origin == BlockOrigin::kUploaded && (word & kIsKnown) != 0) origin = BlockOrigin::kChanged;
  Store(block, WithOrigin(0, origin));
}

void BlockStates::SetInStep(std::size_t block, std::uint64_t hash) {
  Store(block, WithOrigin((hash & kHashMask) | kIsKnown, origin(block)));
}

BlockOrigin BlockStates::origin(std::size_t block) const {
  return static_cast<BlockOrigin>(Load(block) & kOriginMask);
}

std::optional<std::uint64_t> BlockStates::content(std::size_t block) const {
  const std::uint64_t word = Load(block);
  const bool is_known = word == 0 || (word & kIsKnown) != 0;
  return is_known ? std::optional(word & ~kOriginMask) : std::nullopt;
}

MovedBytes BlockStates::ByOrigin(Extent extent) const {
  MovedBytes bytes;
  for (std::size_t block = extent.begin / block_bytes_; block * block_bytes_ < extent.end;
       ++block) {
    const Bytes inside = std::min(extent.end, (block + 1) * block_bytes_) -
                         std::max(extent.begin, block * block_bytes_);
    switch (origin(block)) {
      case BlockOrigin::kUntouched:
        break;
      case BlockOrigin::kScratch:
        bytes.scratch += inside;
        break;
      case BlockOrigin::kUploaded:
        bytes.uploaded += inside;
        break;
      case BlockOrigin::kChanged:
        bytes.changed += inside;
        break;
    }
  }
  return bytes;
}

void BlockStates::NoteUpload(Extent extent) {
  for (std::size_t block = extent.begin / block_bytes_; block * block_bytes_ < extent.end;
       ++block) {
    const bool is_changed = origin(block) == BlockOrigin::kChanged;
    const bool is_whole =
        extent.begin <= block * block_bytes_ && (block + 1) * block_bytes_ <= extent.end;
    Store(block,
          WithOrigin(0, is_changed && !is_whole ? BlockOrigin::kChanged : BlockOrigin::kUploaded));
  }
}

void BlockStates::Forget(Extent extent) {
  for (std::size_t block = extent.begin / block_bytes_; block * block_bytes_ < extent.end;
       ++block) {
    // In one step, as another process may note an upload meanwhile.
    std::atomic_ref(words_[block]).fetch_and(kOriginMask, std::memory_order_relaxed);
  }
}

void BlockStates::Reset(Extent extent) {
  Forget(extent);
  for (std::size_t block = (extent.begin + block_bytes_ - 1) / block_bytes_;
       (block + 1) * block_bytes_ <= extent.end; ++block) {
    Store(block, 0);
  }
}

}  // namespace torpor::memory
