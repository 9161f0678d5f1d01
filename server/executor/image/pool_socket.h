#pragma once

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
};

struct PoolRequest {
  PoolAsk what = PoolAsk::kTry;
  std::uint32_t count = 0;  // 1 to kMaxDescriptors, for kFetch
  std::uint64_t first = 0;
  std::uint64_t patience_ms = 0;  // for kOutlive: the owner ends after so long without executors
};

struct PoolReply {
  std::int32_t error = 0;  // errno
  std::uint32_t reserved = 0;
  PoolDescription pool;  // to kOpen
};

}  // namespace torpor::executor
