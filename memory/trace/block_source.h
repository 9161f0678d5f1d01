#pragma once

#include <optional>

#include "memory/free_blocks.h"

namespace torpor::memory {

// Provides a pool with blocks and takes blocks back: a driver, or an arena in place of a driver.
// Not thread-safe.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // Returns a block of at least `bytes` at a multiple of `alignment`, or nullopt if there is no
  // room.
  virtual std::optional<Block> Allocate(Bytes bytes, Bytes alignment) = 0;
  // Takes back a block of Allocate.
  virtual void Free(const Block& block) = 0;

  virtual Bytes capacity() const = 0;
  // The free blocks as far as the source knows; a driver does not tell.
  virtual FreeBlocks free_blocks() const = 0;
};

// Cuts the arena [0, capacity) into blocks, best fit.
class ArenaSource final : public BlockSource {
 public:
  explicit ArenaSource(Bytes capacity) : capacity_(capacity) { free_.Add({0, capacity}); }

  std::optional<Block> Allocate(Bytes bytes, Bytes alignment) override {
    return free_.Take(bytes, alignment);
  }
  void Free(const Block& block) override { free_.Add(block); }
  Bytes capacity() const override { return capacity_; }
  FreeBlocks free_blocks() const override { return free_; }

 private:
  const Bytes capacity_;
  FreeBlocks free_{0};
};

}  // namespace torpor::memory
