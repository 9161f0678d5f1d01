#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

// A session's rings: a memory file, shared by a client and one executor, that carries the frames of
// batch.h in place of an Execution stream. The client connects to the executor's ring socket
// (SOCK_SEQPACKET, the path of the Execution socket and kRingSocketSuffix) and sends a RingRequest.
// The executor answers a RingReply with the file's descriptor in an SCM_RIGHTS control message. The
// connection then stays open as long as both use the rings: the end of either process closes the
// connection, and the other side learns so.
//
// The file holds a RingPage, the request ring and the reply ring. A ring has one writer and one
// reader, and carries records: a length as 4 bytes, little endian, and so many bytes of a frame. A
// record may be longer than the ring.
namespace torpor::wire {

inline constexpr char kRingSocketSuffix[] = ".rings";
inline constexpr std::uint32_t kRingVersion = 1;

inline constexpr Bytes kRingPageBytes = 4 * kKiB;
// A full batch fits the request ring while the executor takes another; larger rings would only keep
// more memory from the node.
inline constexpr Bytes kRequestRingBytes = 512 * kKiB;
inline constexpr Bytes kReplyRingBytes = 128 * kKiB;
inline constexpr Bytes kRingFileBytes = kRingPageBytes + kRequestRingBytes + kReplyRingBytes;
static_assert(std::has_single_bit(kRequestRingBytes) && std::has_single_bit(kReplyRingBytes));

// Counts of bytes since the ring was made, each written by one side. Either side keeps its own
// count in memory of its own and checks the other's.
struct RingCursors {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;
};

// What a side waits for while asleep. The peer that brings such an event clears the bits and wakes
// the sleeper.
enum RingWait : std::uint32_t {
  kWaitsForRecord = 1,  // a thread sleeps on the word, as a futex
  kWaitsForRoom = 2,    // half of the ring; the executor by futex, the client by RingNotice
  kPollsForRecord = 4,  // the client's service thread polls the connection: by RingNotice
};

struct RingPage {
  RingCursors requests;
  RingCursors replies;
  alignas(64) std::atomic<std::uint32_t> executor_waits;  // of RingWait
  alignas(64) std::atomic<std::uint32_t> client_waits;
};
static_assert(sizeof(RingPage) <= kRingPageBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct RingRequest {
  std::uint32_t version = kRingVersion;
  std::uint32_t reserved = 0;
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> session_key{};
};
static_assert(sizeof(RingRequest) == 32);

struct RingReply {
  std::int32_t error = 0;  // errno; 0: a descriptor is attached
  std::uint32_t version = kRingVersion;
};

// Packets from the executor after the RingReply: one byte, of this enum, and a text for kEnd.
enum class RingNotice : std::uint8_t {
  kLook = 1,  // a record or room has come, as asked for in client_waits
  kEnd = 2,   // the executor ends the session's stream; the rest of the packet says why
};
inline constexpr std::size_t kMaxNoticeBytes = 1024;

}  // namespace torpor::wire
