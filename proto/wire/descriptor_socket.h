#pragma once

#include <array>
#include <cstdint>

// Memory files cannot travel over gRPC: torpord, which creates all files, hands descriptors out
// over a separate Unix socket (SOCK_SEQPACKET). For each request, of which a connection may carry
// many, the client sends a DescriptorRequest, and torpord answers a DescriptorReply with the
// descriptor in an SCM_RIGHTS control message if error is 0.
namespace torpor::wire {

enum class SharedMemory : std::uint32_t {
  kWindow = 1,     // completion page and payload ring
  kHostArena = 2,  // memory of cudaHostAlloc, sparse; the byte at offset x is the byte at host_base
                   // + x
  kImage = 3,  // for executors only (torpord knows them by SO_PEERCRED): the image of the session's
               // device memory, sparse; the byte at offset x is the own place of the byte at device
               // address device_base + x. The annex follows, as large (memory/block_states.h). Map
               // only parts: each half is as large as the node's addresses
  kBlockStates = 4,  // for executors only: a BlockRecord of each block of kImageBlockBytes of the
                     // image, then, on a page of its own, a CheckpointRecord
  kTenantFile = 5,   // for executors only: the places of equal blocks of the tenant's sessions, as
                     // large as the node's addresses, sparse; tenants use places apart. Map only
                     // parts
};

// Size of the blocks in which a session's image, a multiple of this size, is compared with the
// GPU's memory. Hashes take 1/8192 of the image's size, and one changed byte costs a copy of at
// most 64 KiB.
inline constexpr std::uint64_t kImageBlockBytes = 64 << 10;

struct DescriptorRequest {
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> key{};  // the session's key
  SharedMemory what = SharedMemory::kWindow;
  std::uint32_t reserved = 0;
};

struct DescriptorReply {
  std::int32_t error = 0;  // errno
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;  // size of the file, which is sealed against shrinking and growing
};

}  // namespace torpor::wire
