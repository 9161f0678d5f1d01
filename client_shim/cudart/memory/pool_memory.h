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

  std::uint64_t stream() const { return stream_; }  // the stream's name (free_marks.h)
  // Whether the stream has passed the point. Once true, always true.
  virtual bool IsPassed() const = 0;

 private:
  const std::uint64_t stream_;
};
using FreePointPtr = std::shared_ptr<const FreePoint>;

// The accounting of a pool: reserved segments, cut into blocks in use and free blocks. The stream
// that freed a block may reuse the block at once; other streams must wait until the first stream
// has passed the free. Touches no memory and sends no command. Sizes in bytes. Not thread-safe.
class PoolMemory {
 public:
  // Sizes and addresses of blocks are multiples of this.
  static constexpr std::uint64_t kAlignment = 512;

  // Takes a block that `stream` may use now. Returns 0 if no such block is large enough.
  std::uint64_t Take(std::uint64_t bytes, std::uint64_t stream);
  // Takes a block freed in any stream; the user must wait for `after`. Returns 0 if no free block
  // is large enough.
  std::uint64_t TakeAfter(std::uint64_t bytes, FreePointPtr& after);
  // Adds memory for blocks. `begin` and `bytes` are multiples of kAlignment.
  void AddSegment(std::uint64_t begin, std::uint64_t bytes);
  // Frees a block at `point`; null if no work uses the block any more. Returns false if no block in
  // use begins at `address`.
  bool Free(std::uint64_t address, FreePointPtr point);
  // Removes unused segments without pending points, while at least `keep` bytes remain reserved.
  // Returns the begins of the removed segments.
  std::vector<std::uint64_t> TakeOutUnused(std::uint64_t keep);

  // Stores the bytes from `address` to the end of the block in use, 0 in a free block. Returns
  // false outside all segments.
  bool FindRoom(std::uint64_t address, std::uint64_t& room) const;

  // A number of bytes with the high-water mark since the last reset.
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
    std::uint64_t segment = 0;  // begin of the segment
    bool in_use = false;
    FreePointPtr point;  // of a free block, until passed
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by begin; the blocks tile the segments

  template <typename Usable>
  std::uint64_t TakeFirst(std::uint64_t bytes, const Usable& usable, FreePointPtr& point);
  void ForgetPassedPoints();
  // Joins a free block without a point with neighbours of the same kind.
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
