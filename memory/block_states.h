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
  kUntouched = 0,  // zeros, as allocated: nobody is known to have written it
  kScratch = 1,    // written by the GPU only
  kUploaded = 2,   // copied from the host, and as it was then
  kChanged = 3,    // copied from the host, then changed by the GPU
};

// What is known of each block of a session's host image: the hash of its bytes, which tells whether
// the GPU's are still the same, and where they come from. A view of words that processes share and
// that outlive each of them; all zeros is a new image. One process at a time changes them, but
// Forget and Reset may come from another at any time: Forget loses no origin, Reset is for what was
// allocated or freed, and a block that is known too little of is only copied once more.
class BlockStates {
 public:
  static constexpr Bytes kBytesPerBlock = sizeof(std::uint64_t);

  // A word a block of `block_bytes`, from the image's begin on. Borrows the words.
  BlockStates(std::span<std::uint64_t> words, Bytes block_bytes);

  std::size_t blocks() const { return words_.size(); }
  Bytes block_bytes() const { return block_bytes_; }

  // Whether the block's host bytes are known to have this hash. Of the hash's 64 bits 61 count.
  bool IsInStep(std::size_t block, std::uint64_t hash) const;
  // The GPU has written the block, and it is about to be copied to the image: what is written of it
  // is scratch or changed from now on, and its hash unknown until SetInStep.
  void NoteChanged(std::size_t block);
  // The block's host bytes have this hash now.
  void SetInStep(std::size_t block, std::uint64_t hash);

  BlockOrigin origin(std::size_t block) const;
  // The extent's bytes by origin; those of untouched blocks do not count.
  MovedBytes ByOrigin(Extent extent) const;

  // Bytes of the extent are about to be copied from the host, on the GPU and to the image.
  void NoteUpload(Extent extent);
  // The image's blocks that hold bytes of the extent may be anything from now on.
  void Forget(Extent extent);
  // The extent was allocated or freed: blocks wholly inside are untouched, others are forgotten.
  void Reset(Extent extent);

 private:
  std::uint64_t Load(std::size_t block) const;
  void Store(std::size_t block, std::uint64_t word);

  const std::span<std::uint64_t> words_;
  const Bytes block_bytes_;
};

}  // namespace torpor::memory
