#pragma once

#include <array>
#include <cstdint>

#include "server/executor/image/pool_description.h"

// Messages between an executor and the owner of its GPU's memory, over the owner's Unix socket
// (SOCK_SEQPACKET): a PoolReply answers each PoolRequest.
namespace torpor::executor {

enum class PoolAsk : std::uint32_t {
  kTry = 0,      // one descriptor, of a chunk of the pool or, before kOpen, of one like it
  kOpen = 1,     // the pool; the first such request makes the chunks
  kFetch = 2,    // the descriptors of chunks [first, first + count), in order
  kOutlive = 3,  // the owner is to live on when torpord ends
  kTake = 4,     // `count` free chunks, which the connection holds from now on
  kReturn = 5,   // chunks that the connection holds are free again
};

// Most chunks in one kTake or kReturn.
inline constexpr std::uint32_t kMaxTaken = 256;

struct PoolRequest {
  PoolAsk what = PoolAsk::kTry;
  // 1 to kMaxDescriptors, for kFetch; 1 to kMaxTaken, for kTake and kReturn.
  std::uint32_t count = 0;
  std::uint64_t first = 0;
  std::uint64_t patience_ms = 0;  // for kOutlive: the owner ends after so long without executors
  std::uint64_t domain = 0;       // for kTake: whose bytes the chunks may hold; all others' go
  // For kTake: `count` and what further requests will take. ENOSPC if fewer are free.
  std::uint64_t needed = 0;
  std::array<std::uint32_t, kMaxTaken> numbers{};  // for kReturn, the first `count`
};

struct PoolReply {
  std::int32_t error = 0;  // errno; the request has changed nothing
  std::uint32_t reserved = 0;
  std::uint64_t free_chunks = 0;                   // once the pool is open
  PoolDescription pool;                            // to kOpen
  std::array<std::uint32_t, kMaxTaken> numbers{};  // to kTake, the first `count`
};

}  // namespace torpor::executor
