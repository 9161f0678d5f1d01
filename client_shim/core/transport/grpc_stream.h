#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client_shim/core/transport/frame_codec.h"
#include "client_shim/core/transport/nghttp2_library.h"

namespace torpor::shim {

// An HTTP/2 connection with one bidirectional gRPC call whose messages are torpor.v1.Frame in both
// directions. Never waits: the owner polls the socket. Not thread-safe.
class GrpcStream {
 public:
  // `method` is the call's HTTP/2 path, for example /torpor.v1.Control/Connect. `socket` is
  // connected, in blocking or non-blocking mode: all reads and writes pass MSG_DONTWAIT.
  GrpcStream(const Nghttp2& http2, UniqueFd socket, const std::string& method);
  ~GrpcStream();
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  // Queues a frame for Write; `bytes` holds kFrameRoom free bytes and then the payload.
  void Send(std::vector<std::uint8_t> bytes);

  // Writes queued bytes until the socket is full.
  void Write();
  // Moves bytes to and from the socket, as far as there are any.
  void Transfer();
  // Poll events that concern the socket.
  short EventsToWatch() const;
  // True after Write if the socket took less than there was: poll for POLLOUT.
  bool socket_is_full() const { return out_at_ < out_.size(); }
  // Bytes queued but not yet in the socket, because of a full socket or the peer's flow control.
  std::size_t unsent_bytes() const { return queued_bytes_ + (out_.size() - out_at_); }

  // Takes bytes that were read from the socket; Next then returns the payloads.
  void Feed(std::span<const std::uint8_t> bytes);
  // The socket ended or failed.
  void FeedEnd(const std::string& why);
  // Takes the next payload, valid until the next Feed; false if no complete payload is left.
  bool Next(std::span<const std::uint8_t>& payload);

  // A closed stream stays closed. `why_closed` is a text for people. `was_aborted`: the peer has
  // ended the stream on purpose (gRPC's status ABORTED), and would do so again.
  bool closed() const { return closed_; }
  const std::string& why_closed() const { return why_closed_; }
  // Whether the connection has ended without a word of the peer, as a process that dies leaves it.
  bool was_cut() const { return was_cut_; }
  bool was_aborted() const { return closed_ && grpc_status_ == kAborted; }
  int fd() const { return socket_.get(); }

 private:
  static constexpr char kAborted[] = "10";
  struct Callbacks;
  struct Queued {
    std::vector<std::uint8_t> bytes;
    std::size_t at = 0;
  };

  void Close(const std::string& why);
  void FillOut();
  void TakeQueued(std::size_t bytes);
  void OnHeader(std::string_view name, std::string_view value);
  std::string StatusText() const;

  const Nghttp2& http2_;
  UniqueFd socket_;
  nghttp2_session* session_ = nullptr;
  std::int32_t stream_id_ = -1;

  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  bool data_deferred_ = false;     // nghttp2 waits to be told that there is more
  std::vector<std::uint8_t> out_;  // HTTP/2 bytes on their way into the socket
  std::size_t out_at_ = 0;

  FrameDecoder decoder_;
  std::string http_status_;
  std::string grpc_status_;
  std::string grpc_message_;
  bool closed_ = false;
  bool was_cut_ = false;
  std::string why_closed_;
};

}  // namespace torpor::shim
