#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client_shim/core/frame_codec.h"
#include "client_shim/core/nghttp2_library.h"

namespace torpor::shim {

// One HTTP/2 connection with one bidirectional gRPC call on it, both of whose messages are
// torpor.v1.Frame. It never waits: the owner polls the socket. Not thread-safe.
class GrpcStream {
 public:
  // `method` is the call's HTTP/2 path, for example /torpor.v1.Control/Connect. `socket` is
  // connected; reads and writes of ours pass MSG_DONTWAIT, its mode does not matter.
  GrpcStream(const Nghttp2& http2, UniqueFd socket, const std::string& method);
  ~GrpcStream();
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  // Queues a frame; `bytes` holds kFrameRoom free bytes and then the payload. Write sends it.
  void Send(std::vector<std::uint8_t> bytes);

  // Gives the socket what it takes now.
  void Write();
  // True after Write if the socket took less than there was: poll for POLLOUT.
  bool socket_is_full() const { return out_at_ < out_.size(); }
  // What is queued but not yet in the socket, held back by it or by the peer's flow control.
  std::size_t unsent_bytes() const { return queued_bytes_ + (out_.size() - out_at_); }

  // Takes bytes that were read from the socket; then Next gives the payloads.
  void Feed(std::span<const std::uint8_t> bytes);
  // The socket ended or failed.
  void FeedEnd(const std::string& why) { Close(why); }
  // The next payload, alive until the next Feed. False: none.
  bool Next(std::span<const std::uint8_t>& payload);

  // Once closed a stream stays closed; `why_closed` is for people.
  bool closed() const { return closed_; }
  const std::string& why_closed() const { return why_closed_; }
  int fd() const { return socket_.get(); }

 private:
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
  std::string why_closed_;
};

}  // namespace torpor::shim
