#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"
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

// The state of each block of a session's host image: the origin of the bytes, and their hash, by
// which an executor finds out whether the GPU's bytes are still the same. A view of words in memory
// that processes share and that outlives each process; all zeros describe a new image.
//
// One process at a time changes the words, except that Forget and Reset may come from another
// process at any time: Forget keeps origins, Reset is for bytes just allocated or freed, and a
// block with too little knowledge costs only one more copy.
class BlockStates {
 public:
  static constexpr Bytes kBytesPerBlock = sizeof(std::uint64_t);

  // Returns where the states of the extent's blocks lie in an array of states; `extent` is not
  // empty.
  static constexpr Extent StatesOf(Extent extent, Bytes block_bytes) {
    return {extent.begin / block_bytes * kBytesPerBlock,
            ((extent.end - 1) / block_bytes + 1) * kBytesPerBlock};
  }

  // `words` has one word per block of `block_bytes`, from the image's begin on, and must outlive
  // this object.
  BlockStates(std::span<std::uint64_t> words, Bytes block_bytes);

  std::size_t blocks() const { return words_.size(); }
  Bytes block_bytes() const { return block_bytes_; }

  // Whether the block's host bytes are known to have this hash. Compares 61 of the 64 bits.
  bool IsInStep(std::size_t block, std::uint64_t hash) const;
  // Call before the copy of a block that the GPU has written: makes the origin scratch or changed,
  // and the hash unknown until SetInStep.
  void NoteChanged(std::size_t block);
  // Notes that the block's host bytes have this hash now.
  void SetInStep(std::size_t block, std::uint64_t hash);

  BlockOrigin origin(std::size_t block) const;
  // A value that stands for the block's host bytes: equal values mean equal bytes. Nullopt if the
  // bytes are written and their hash is unknown. Never kNoContent.
  static constexpr std::uint64_t kNoContent = 1;
  std::optional<std::uint64_t> content(std::size_t block) const;
  // Counts the extent's bytes by origin, without bytes of untouched blocks.
  MovedBytes ByOrigin(Extent extent) const;

  // Call before bytes of the extent are copied from the host, on the GPU and to the image.
  void NoteUpload(Extent extent);
  // Makes the hashes of all blocks that hold bytes of the extent unknown.
  void Forget(Extent extent);
  // Call when the extent was allocated or freed: makes blocks wholly inside untouched, and forgets
  // blocks partly inside.
  void Reset(Extent extent);

 private:
  std::uint64_t Load(std::size_t block) const;
  void Store(std::size_t block, std::uint64_t word);

  const std::span<std::uint64_t> words_;
  const Bytes block_bytes_;
};

}  // namespace torpor::memory
