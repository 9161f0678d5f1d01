#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace torpor::shim {

// The place in a stream's order at which memory was freed.
class FreePoint {
 public:
  explicit FreePoint(std::uint64_t stream) : stream_(stream) {}
  virtual ~FreePoint() = default;
  FreePoint(const FreePoint&) = delete;
  FreePoint& operator=(const FreePoint&) = delete;

  std::uint64_t stream() const { return stream_; }  // as commands name it
  // Whether the stream has come to it. Once true, always true.
  virtual bool IsPassed() const = 0;

 private:
  const std::uint64_t stream_;
};
using FreePointPtr = std::shared_ptr<const FreePoint>;

// The memory of one pool: segments that the pool has reserved, cut into blocks that are in use or
// free. A free block is for the stream that freed it at once, for the others when that stream has
// come to the free. Only accounting. Not thread-safe.
class PoolMemory {
 public:
  // What block sizes and addresses are multiples of.
  static constexpr std::uint64_t kAlignment = 512;

  // A block that `stream` may use now; 0 if there is none of that size.
  std::uint64_t Take(std::uint64_t bytes, std::uint64_t stream);
  // A block whoever has freed it, which its user may touch after `after`; 0 if there is none.
  std::uint64_t TakeAfter(std::uint64_t bytes, FreePointPtr& after);
  // Memory for blocks: `begin` and `bytes` are multiples of kAlignment.
  void AddSegment(std::uint64_t begin, std::uint64_t bytes);
  // Without a point nothing uses the block any more. False: no block in use begins there.
  bool Free(std::uint64_t address, FreePointPtr point);
  // Takes out segments that nothing uses or waits for, while at least `keep` bytes remain
  // reserved. Gives their begins.
  std::vector<std::uint64_t> TakeOutUnused(std::uint64_t keep);

  // Bytes from `address` to the end of the block in use that contains it, 0 if it is free; false
  // if it lies in no segment.
  bool FindRoom(std::uint64_t address, std::uint64_t& room) const;

  // A number and the most that it was since the last reset.
  struct Level {
    std::uint64_t now = 0;
    std::uint64_t high = 0;

    void Add(std::uint64_t bytes);
    void Subtract(std::uint64_t bytes) { now -= bytes; }
    void ResetHigh() { high = now; }
  };
  Level& reserved() { return reserved_; }
  Level& used() { return used_; }

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint64_t segment = 0;  // its begin
    bool in_use = false;
    FreePointPtr point;  // of a free block, until it is passed
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by begin; they tile the segments

  template <typename Usable>
  std::uint64_t TakeFirst(std::uint64_t bytes, const Usable& usable, FreePointPtr& point);
  void ForgetPassedPoints();
  // Joins a free block without a point with such neighbours.
  void Join(Blocks::iterator block);
  void AddFree(Blocks::const_iterator block) { free_.emplace(block->second.bytes, block->first); }
  void EraseFree(Blocks::const_iterator block) { free_.erase({block->second.bytes, block->first}); }

  Blocks blocks_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_;  // bytes and begin
  std::map<std::uint64_t, std::uint64_t> segments_;         // begin to bytes
  std::set<std::uint64_t> waiting_;                         // begins of blocks with a point
  Level reserved_;
  Level used_;
};

}  // namespace torpor::shim
