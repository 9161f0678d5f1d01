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

// The baseline that the paper compares with (Torpor-Block, 7.3): released blocks are cached in one
// pool, as they are. A request gets the smallest cached block that is large enough, all of it;
// else a new one from the source, for which cached blocks, the largest first, are given back until
// there is room. Nothing is moved.
class SinglePool final : public Placement {
 public:
  explicit SinglePool(std::unique_ptr<BlockSource> source) : source_(std::move(source)) {}

  std::optional<Block> Take(const BlockRequest& request) override;
  // Cached blocks only.
  std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset) override;
  void Release(const BlockRequest& request, const Block& place) override;

  Bytes capacity() const override { return source_->capacity(); }
  Bytes free_bytes() const override { return capacity() - cached_bytes_ - taken_bytes_; }
  Bytes cached_bytes() const override { return cached_bytes_; }
  Bytes largest_request() const override;

  std::vector<Move> PlanMoves(const std::vector<PlacedBlock>&, Bytes) override { return {}; }

  // Calls of the source so far.
  std::uint64_t source_calls() const { return source_calls_; }

 private:
  // What drivers align and round to.
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
