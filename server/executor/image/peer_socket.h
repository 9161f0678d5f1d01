#pragma once

#include <array>
#include <cstdint>

// What executors say to each other, over a Unix socket (SOCK_SEQPACKET) that the owner of an image
// serves: a ChunkRequest is answered by a ChunkReply, with a descriptor of each chunk that is
// there, in their order, in one SCM_RIGHTS message.
namespace torpor::executor {

// The kernel passes at most 253 descriptors with a message.
inline constexpr std::uint32_t kMaxChunks = 128;

struct ChunkRequest {
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> peer_key{};
  std::uint64_t first = 0;        // index of the first chunk wanted, and how many from there
  std::uint32_t count = 0;        // 1 to kMaxChunks
  std::uint32_t is_for_copy = 0;  // 1: only read, and only as long as the image stays
};

struct ChunkReply {
  std::int32_t error = 0;  // errno
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, kMaxChunks> is_there{};  // 1 for those of the chunks that come
};

}  // namespace torpor::executor
