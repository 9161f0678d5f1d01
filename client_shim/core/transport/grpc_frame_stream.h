#pragma once

#include <string>
#include <vector>

#include "client_shim/core/transport/frame_stream.h"
#include "client_shim/core/transport/grpc_stream.h"

namespace torpor::shim {

// Frames over gRPC: a call of torpor.v1.Execution/Run.
class GrpcFrameStream final : public FrameStream {
 public:
  // `socket` is connected to the executor.
  GrpcFrameStream(const Nghttp2& http2, UniqueFd socket);
  ~GrpcFrameStream() override;

  bool is_introduced() const override { return false; }
  void Send(std::vector<std::uint8_t>& frame) override;
  void Write() override { stream_.Write(); }
  std::size_t unsent_bytes() const override { return stream_.unsent_bytes(); }
  bool awaits_service() const override { return stream_.socket_is_full(); }
  Arrival Await(bool waits) override;
  void Take(Arrival arrival) override;
  bool Next(std::span<const std::uint8_t>& payload) override;
  void End(const std::string& why) override;
  bool closed() const override { return stream_.closed(); }
  const std::string& why_closed() const override { return stream_.why_closed(); }
  int fd() const override { return stream_.fd(); }
  Polled Prepare(bool reads) override;
  bool OnEvents(short events) override;

 private:
  GrpcStream stream_;
  std::vector<std::uint8_t> read_buffer_;  // of the thread that reads
  std::size_t received_ = 0;               // bytes of read_buffer_, between Await and Take
};

}  // namespace torpor::shim
