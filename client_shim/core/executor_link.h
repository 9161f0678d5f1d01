#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/grpc_stream.h"

namespace torpor::shim {

// A thread that waits for the reply of its SYNC command. Lives on that thread's stack.
struct ReplyWaiter {
  CallReply* reply = nullptr;
  bool tells_program = true;  // if it fails
  bool done = false;
  cudaError_t error = cudaSuccess;  // the transport's
  std::condition_variable changed;
};

// A SYNC command that was sent and not answered yet.
struct PendingReply {
  enum class Kind { kAttach, kCall, kDrain };
  Kind kind = Kind::kCall;
  std::uint32_t call_id = 0;
  ReplyWaiter* waiter = nullptr;  // of a kCall
};

// The stream to one executor process, kept open between leases. Guarded by the session's mutex;
// the thread that has set `is_being_read` receives from the socket without it.
struct ExecutorLink {
  ExecutorLink(const Nghttp2& http2, UniqueFd socket)
      : stream(http2, std::move(socket), "/torpor.v1.Execution/Run") {}

  bool HasWaiter() const {
    for (const PendingReply& reply : pending)
      if (reply.waiter) return true;
    return false;
  }

  GrpcStream stream;
  std::deque<PendingReply> pending;
  std::vector<std::uint8_t> read_buffer;  // of the thread that reads
  bool is_being_read = false;
  bool is_attached = false;         // kAttach was sent
  std::uint64_t known_version = 0;  // of the journal
};

}  // namespace torpor::shim
