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

constexpr BlockOrigin OriginOf(std::uint64_t word) {
  return static_cast<BlockOrigin>(word & kOriginMask);
}

}  // namespace

BlockStates::BlockStates(std::span<BlockRecord> records, CheckpointRecord& checkpoint,
                         Bytes block_bytes)
    : records_(records), checkpoint_(checkpoint), block_bytes_(block_bytes) {}

// All atomic, as another executor that maps the session's memory may read at the same time.
BlockStates::Version BlockStates::LoadVersion(std::size_t block, std::size_t index) const {
  Version& version = records_[block].versions[index];
  Version loaded;
  loaded.epoch = std::atomic_ref(version.epoch).load(std::memory_order_acquire);
  loaded.word = std::atomic_ref(version.word).load(std::memory_order_relaxed);
  loaded.home = std::atomic_ref(version.home).load(std::memory_order_relaxed);
  return loaded;
}

void BlockStates::StoreVersion(std::size_t block, std::size_t index, const Version& version) {
  Version& stored = records_[block].versions[index];
  std::atomic_ref(stored.word).store(version.word, std::memory_order_relaxed);
  std::atomic_ref(stored.home).store(version.home, std::memory_order_relaxed);
  // The version holds from here on.
  std::atomic_ref(stored.epoch).store(version.epoch, std::memory_order_release);
}

std::size_t BlockStates::Latest(std::size_t block) const {
  return LoadVersion(block, 1).epoch > LoadVersion(block, 0).epoch ? 1 : 0;
}

BlockStates::Version BlockStates::Load(std::size_t block) const {
  return LoadVersion(block, Latest(block));
}

void BlockStates::StoreWord(std::size_t block, std::uint64_t word) {
  std::atomic_ref(records_[block].versions[Latest(block)].word)
      .store(word, std::memory_order_relaxed);
}

bool BlockStates::IsInStep(std::size_t block, std::uint64_t hash) const {
  return (Load(block).word & ~kOriginMask) == ((hash & kHashMask) | kIsKnown);
}

void BlockStates::SetInStep(std::size_t block, std::uint64_t hash) {
  StoreWord(block, WithOrigin((hash & kHashMask) | kIsKnown, origin(block)));
}

BlockOrigin BlockStates::origin(std::size_t block) const { return OriginOf(Load(block).word); }

std::optional<std::uint64_t> BlockStates::content(std::size_t block) const {
  const std::uint64_t word = Load(block).word;
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

bool BlockStates::IsPending(std::size_t block) const {
  return Load(block).epoch > checkpoint_.number();
}

bool BlockStates::NeedsAnnex(std::size_t block) const {
  const Version latest = Load(block);
  return latest.epoch <= checkpoint_.number() && latest.home == kOwnPlace &&
         OriginOf(latest.word) != BlockOrigin::kUntouched;
}

void BlockStates::AppendPlaces(std::size_t block, bool (*is_kind)(BlockHome),
                               std::vector<std::size_t>& places) const {
  for (std::size_t index = 0; index < 2; ++index) {
    const BlockHome home = LoadVersion(block, index).home;
    if (is_kind(home)) places.push_back(PlaceOfHome(block, home));
  }
}

void BlockStates::AppendAnnexPlaces(std::size_t block, std::vector<std::size_t>& places) const {
  AppendPlaces(block, IsAnnexHome, places);
}

void BlockStates::AppendTenantPlaces(std::size_t block, std::vector<std::size_t>& places) const {
  AppendPlaces(block, IsTenantHome, places);
}

void BlockStates::Move(std::size_t block, BlockHome home) {
  std::atomic_ref(records_[block].versions[Latest(block)].home)
      .store(home, std::memory_order_release);
}

std::uint64_t BlockStates::ChangedWord(std::size_t block) const {
  const std::uint64_t word = Load(block).word;
  BlockOrigin origin = OriginOf(word);
  if (origin == BlockOrigin::kUntouched) origin = BlockOrigin::kScratch;
  // If the hash is unknown, the reason is the upload itself.
  if (origin == BlockOrigin::kUploaded && (word & kIsKnown) != 0) origin = BlockOrigin::kChanged;
  return WithOrigin(0, origin);
}

void BlockStates::NoteChanged(std::size_t block, BlockHome home) {
  const std::uint64_t word = ChangedWord(block);
  if (IsPending(block)) return StoreWord(block, word);
  checkpoint_.NoteExceeded();
  StoreVersion(block, 1 - Latest(block), {word, home, checkpoint_.number() + 1});
}

void BlockStates::NoteOverwritten(std::size_t block) {
  const std::uint64_t word = ChangedWord(block);
  if (IsTenantHome(home(block))) Move(block, kOwnPlace);
  StoreWord(block, word);
}

void BlockStates::Retire(std::size_t block) { StoreVersion(block, 1 - Latest(block), {}); }

bool BlockStates::RollBack(std::size_t block) {
  if (!IsPending(block)) return false;
  const BlockHome undone = Load(block).home;
  StoreVersion(block, Latest(block), {});
  return undone == kOwnPlace && origin(block) == BlockOrigin::kUntouched;
}

void BlockStates::NoteUpload(Extent extent) {
  for (std::size_t block = extent.begin / block_bytes_; block * block_bytes_ < extent.end;
       ++block) {
    const bool is_changed = origin(block) == BlockOrigin::kChanged;
    const bool is_whole =
        extent.begin <= block * block_bytes_ && (block + 1) * block_bytes_ <= extent.end;
    StoreWord(block, WithOrigin(0, is_changed && !is_whole ? BlockOrigin::kChanged
                                                           : BlockOrigin::kUploaded));
  }
}

void BlockStates::Forget(Extent extent) {
  for (std::size_t block = extent.begin / block_bytes_; block * block_bytes_ < extent.end;
       ++block) {
    // In one step, as another process may note an upload meanwhile.
    for (BlockRecord::Version& version : records_[block].versions) {
      std::atomic_ref(version.word).fetch_and(kOriginMask, std::memory_order_relaxed);
    }
  }
}

void ResetBlocks(std::span<BlockRecord> records, Extent extent, Bytes block_bytes) {
  CheckpointRecord none;
  BlockStates(records, none, block_bytes).Forget(extent);
  for (std::size_t block = (extent.begin + block_bytes - 1) / block_bytes;
       (block + 1) * block_bytes <= extent.end; ++block) {
    for (BlockRecord::Version& version : records[block].versions) {
      std::atomic_ref(version.epoch).store(0, std::memory_order_relaxed);
      std::atomic_ref(version.home).store(kOwnPlace, std::memory_order_relaxed);
      std::atomic_ref(version.word).store(0, std::memory_order_relaxed);
    }
  }
}

std::vector<BlockHome> FreeAnnexHomes(const BlockStates& states, const ExtentSet& own,
                                      std::size_t count) {
  std::vector<std::size_t> taken;
  for (const Extent& blocks : own.extents()) {
    for (std::size_t block = blocks.begin; block < blocks.end; ++block) {
      states.AppendAnnexPlaces(block, taken);
    }
  }
  std::ranges::sort(taken);
  std::vector<BlockHome> free;
  auto next_taken = taken.begin();
  for (const Extent& blocks : own.extents()) {
    for (std::size_t place = blocks.begin; place < blocks.end && free.size() < count; ++place) {
      while (next_taken != taken.end() && *next_taken < place) ++next_taken;
      if (next_taken == taken.end() || *next_taken != place) free.push_back(AnnexHome(place));
    }
  }
  return free;
}

}  // namespace torpor::memory
