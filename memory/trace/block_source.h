#pragma once

#include <optional>

#include "memory/free_blocks.h"

namespace torpor::memory {

// What a pool gets its blocks from and gives them back to: a driver, or an arena in its place.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  virtual std::optional<Block> Allocate(Bytes bytes, Bytes alignment) = 0;
  virtual void Free(const Block& block) = 0;

  virtual Bytes capacity() const = 0;
  // What it has left, as far as that is known to it, in address order.
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
