#pragma once

#include <array>
#include <cstdint>

#include "server/executor/image/pool_description.h"

// Messages between executors, over a Unix socket (SOCK_SEQPACKET) of the image's owner: a
// ChunkReply answers a ChunkRequest. Unless the request only asks where the chunks are, a
// descriptor of each backed chunk comes in one SCM_RIGHTS message, in order.
namespace torpor::executor {

// The kernel passes at most 253 descriptors with a message.
inline constexpr std::uint32_t kMaxChunks = 128;

enum class ChunkUse : std::uint32_t {
  kShare = 0,   // to use the image together
  kLocate = 1,  // to learn the chunks' numbers, for copies from chunks that are mapped already
  kCopy = 2,    // to read chunks, until the image is dropped
};

struct ChunkRequest {
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> peer_key{};
  std::uint64_t first = 0;  // index of the first chunk wanted
  std::uint32_t count = 0;  // 1 to kMaxChunks
  ChunkUse use = ChunkUse::kShare;
};

// The number of a chunk that the owner does not have.
inline constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};

struct ChunkReply {
  std::int32_t error = 0;  // errno
  std::uint32_t reserved = 0;
  PoolDescription pool;
  std::array<std::uint32_t, kMaxChunks> numbers{};  // of the wanted chunks in the pool
};

}  // namespace torpor::executor
