#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "memory/placement.h"
#include "memory/trace/block_source.h"

namespace torpor::memory {

// The baseline of the paper (Torpor-Block, 7.3): one pool caches released blocks as they are. A
// request gets the whole of the smallest sufficient cached block; else a new block from the source,
// to which cached blocks, the largest first, go back until there is room. Never moves blocks.
class SinglePool final : public Placement {
 public:
  explicit SinglePool(std::unique_ptr<BlockSource> source) : source_(std::move(source)) {}

  std::optional<Block> Take(const BlockRequest& request) override;
  // Takes cached blocks only.
  std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset) override;
  void Release(const BlockRequest& request, const Block& place) override;

  Bytes capacity() const override { return source_->capacity(); }
  Bytes free_bytes() const override { return capacity() - cached_bytes_ - taken_bytes_; }
  Bytes cached_bytes() const override { return cached_bytes_; }
  Bytes largest_request() const override;

  std::vector<Move> PlanMoves(const std::vector<PlacedBlock>&, Bytes) override { return {}; }

  // Number of calls of the source so far.
  std::uint64_t source_calls() const { return source_calls_; }

 private:
  // Alignment and rounding of drivers.
  static constexpr Bytes kUnitBytes = 512;

  std::optional<Block> TakeCached(const BlockRequest& request);
  std::optional<Block> TakeNew(const BlockRequest& request);
  Block Uncache(Block block);

  const std::unique_ptr<BlockSource> source_;
  std::map<Bytes, Bytes> cached_;              // offset -> bytes
  std::set<std::pair<Bytes, Bytes>> by_size_;  // (bytes, offset)
  Bytes cached_bytes_ = 0;
  Bytes taken_bytes_ = 0;
  std::uint64_t source_calls_ = 0;
};

}  // namespace torpor::memory
