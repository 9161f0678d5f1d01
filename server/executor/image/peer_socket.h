#pragma once

#include <array>
#include <cstdint>

// Messages between executors, over a Unix socket (SOCK_SEQPACKET) of the image's owner: a
// ChunkReply answers a ChunkRequest, with a descriptor of each backed chunk, in order, in one
// SCM_RIGHTS message.
namespace torpor::executor {

// The kernel passes at most 253 descriptors with a message.
inline constexpr std::uint32_t kMaxChunks = 128;

struct ChunkRequest {
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> peer_key{};
  std::uint64_t first = 0;        // index of the first chunk wanted
  std::uint32_t count = 0;        // 1 to kMaxChunks
  std::uint32_t is_for_copy = 0;  // 1: for reading, until the image is dropped
};

struct ChunkReply {
  std::int32_t error = 0;  // errno
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, kMaxChunks> is_there{};  // 1 for each chunk with a descriptor
};

}  // namespace torpor::executor
