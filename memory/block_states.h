#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "memory/checkpoint.h"
#include "memory/extent_set.h"
#include "memory/moved_bytes.h"

namespace torpor::memory {

// Where the bytes of a block of a session's memory come from.
enum class BlockOrigin : std::uint8_t {
  kUntouched = 0,  // zeros as allocated: no write is known
  kScratch = 1,    // written by the GPU only
  kUploaded = 2,   // copied from the host and unchanged since
  kChanged = 3,    // copied from the host, then changed by the GPU
};

// Where a block's bytes lie in host memory: at the block's own place in the image's file; at some
// block's place in the annex, a second file of the same shape; or at a place in the tenant's file,
// where blocks of several sessions may have one home if their bytes are equal. Nobody writes to a
// place of the tenant's file that is a home.
using BlockHome = std::uint32_t;
inline constexpr BlockHome kOwnPlace = 0;
inline constexpr BlockHome kTenantHomes = BlockHome{1} << 31;
constexpr BlockHome AnnexHome(std::size_t place) { return static_cast<BlockHome>(place + 1); }
// For `place` < 2^31.
constexpr BlockHome TenantHome(std::size_t place) {
  return kTenantHomes | static_cast<BlockHome>(place);
}
constexpr bool IsTenantHome(BlockHome home) { return (home & kTenantHomes) != 0; }
constexpr bool IsAnnexHome(BlockHome home) { return home != kOwnPlace && !IsTenantHome(home); }
// Returns the number of the place that is `home` of `block`, in the file of `home`.
constexpr std::size_t PlaceOfHome(std::size_t block, BlockHome home) {
  if (home == kOwnPlace) return block;
  return IsTenantHome(home) ? home & ~kTenantHomes : home - 1;
}

// What is known of a block, in memory that processes share; zeros describe a new block. Of the two
// versions, the one with the higher epoch holds. A version above the last checkpoint's epoch is not
// durable yet: RollBack undoes it.
struct BlockRecord {
  struct Version {
    std::uint64_t word = 0;  // origin and hash
    BlockHome home = kOwnPlace;
    std::uint32_t epoch = 0;
  };
  std::array<Version, 2> versions;
};

// The layout of a session's file of block states: the records, then the checkpoint's on a page of
// its own.
struct BlockStatesLayout {
  Bytes records = 0;     // size of the records
  Bytes checkpoint = 0;  // where the checkpoint's record begins
  Bytes total = 0;
};
// For an image of `image_bytes` (> 0).
constexpr BlockStatesLayout LayoutOfBlockStates(Bytes image_bytes, Bytes block_bytes) {
  const Bytes records = ((image_bytes - 1) / block_bytes + 1) * sizeof(BlockRecord);
  const Bytes checkpoint = RoundUp(records, kCheckpointPageBytes);
  return {records, checkpoint, checkpoint + kCheckpointPageBytes};
}

// The state of each block of a session's host image: the origin of the bytes, their hash, by which
// an executor finds out whether the GPU's bytes are still the same, and their home. A view of
// records in memory that processes share and that outlives each process.
//
// A write-back gives changed blocks a new version and another home, and leaves the last
// checkpoint's bytes alone until Commit makes all new versions the next checkpoint at once.
//
// One process at a time changes the records, except that Forget and ResetBlocks may come from
// another process at any time: Forget keeps origins, ResetBlocks is for bytes just allocated or
// freed, and a block with too little knowledge costs only one more copy.
class BlockStates {
 public:
  static constexpr Bytes kBytesPerBlock = sizeof(BlockRecord);

  // Returns where the records of the extent's blocks lie in an array of records; `extent` is not
  // empty.
  static constexpr Extent StatesOf(Extent extent, Bytes block_bytes) {
    return {extent.begin / block_bytes * kBytesPerBlock,
            ((extent.end - 1) / block_bytes + 1) * kBytesPerBlock};
  }

  // `records` has a record for each block of `block_bytes`, from the image's begin on; it and
  // `checkpoint` must outlive this object.
  BlockStates(std::span<BlockRecord> records, CheckpointRecord& checkpoint, Bytes block_bytes);

  std::size_t blocks() const { return records_.size(); }
  Bytes block_bytes() const { return block_bytes_; }

  // Whether the block's host bytes are known to have this hash. Compares 61 of the 64 bits.
  bool IsInStep(std::size_t block, std::uint64_t hash) const;
  // Notes the hash of the block's host bytes.
  void SetInStep(std::size_t block, std::uint64_t hash);

  BlockOrigin origin(std::size_t block) const;
  BlockHome home(std::size_t block) const { return Load(block).home; }
  // A value that stands for the block's host bytes: equal values mean equal bytes. Nullopt if the
  // bytes are written and their hash is unknown. Never kNoContent.
  static constexpr std::uint64_t kNoContent = 1;
  std::optional<std::uint64_t> content(std::size_t block) const;
  // Counts the extent's bytes by origin, without bytes of untouched blocks.
  MovedBytes ByOrigin(Extent extent) const;

  // --- Write-backs ---
  // Whether the block has a version above the last checkpoint.
  bool IsPending(std::size_t block) const;
  // Whether a pending version of the block needs a place in the annex: the last checkpoint has
  // bytes in the own place.
  bool NeedsAnnex(std::size_t block) const;
  // Adds the block's places in the annex, of whichever version, to `places`.
  void AppendAnnexPlaces(std::size_t block, std::vector<std::size_t>& places) const;
  // Call before the copy of a block that the GPU has written: makes the origin scratch or changed,
  // and the hash unknown until SetInStep. The copy goes to `home`, which no checkpoint uses; a
  // pending block keeps its home.
  void NoteChanged(std::size_t block, BlockHome home);
  // As NoteChanged, for a copy of the whole block over the present bytes, which no checkpoint
  // protects; from the tenant's file the block goes to its own place.
  void NoteOverwritten(std::size_t block);

  // Checkpoint::Commit makes all versions the next checkpoint; copies to the homes of pending
  // blocks are complete.
  Checkpoint checkpoint() const { return checkpoint_; }
  // Call for each block that was pending before Commit: nothing uses the former home any more.
  void Retire(std::size_t block);
  // Undoes a pending version. Call when its writer is gone; Checkpoint::NoteUndone follows the last
  // block. Returns whether the block is untouched again while its own place may hold bytes, which
  // the caller makes zeros.
  bool RollBack(std::size_t block);

  // --- Equal blocks ---
  // Gives the block another home, whose bytes are the same.
  void Move(std::size_t block, BlockHome home);
  // Adds the block's places in the tenant's file, of whichever version, to `places`.
  void AppendTenantPlaces(std::size_t block, std::vector<std::size_t>& places) const;

  // Call before bytes of the extent are copied from the host, on the GPU and to the image.
  void NoteUpload(Extent extent);
  // Makes the hashes of all blocks that hold bytes of the extent unknown.
  void Forget(Extent extent);

 private:
  using Version = BlockRecord::Version;

  // The index of the version that holds.
  std::size_t Latest(std::size_t block) const;
  Version Load(std::size_t block) const;
  Version LoadVersion(std::size_t block, std::size_t index) const;
  void StoreVersion(std::size_t block, std::size_t index, const Version& version);
  void StoreWord(std::size_t block, std::uint64_t word);
  // Adds the places of the block's homes for which `is_kind` holds.
  void AppendPlaces(std::size_t block, bool (*is_kind)(BlockHome),
                    std::vector<std::size_t>& places) const;
  // The word of a block that the GPU has written.
  std::uint64_t ChangedWord(std::size_t block) const;

  const std::span<BlockRecord> records_;
  Checkpoint checkpoint_;
  const Bytes block_bytes_;
};

// Call when the extent was allocated or freed: makes blocks wholly inside untouched, with their own
// places as homes, and forgets blocks partly inside.
void ResetBlocks(std::span<BlockRecord> records, Extent extent, Bytes block_bytes);

// Returns the lowest `count` places in the annex that no version of the blocks of `own` uses;
// `own` are the session's blocks (not bytes), whose places are the session's in the annex, and all
// blocks with places there. Fewer if there are no more.
std::vector<BlockHome> FreeAnnexHomes(const BlockStates& states, const ExtentSet& own,
                                      std::size_t count);

}  // namespace torpor::memory
