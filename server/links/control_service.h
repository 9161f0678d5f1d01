#pragma once

#include <cstddef>

#include "proto/torpor/v1/transport.grpc.pb.h"
#include "server/links/links.h"
#include "server/unix_socket/silent_streams.h"

namespace torpor::server {

// Serves the streams of client processes. A malformed frame ends its own stream only.
class ControlService final : public v1::Control::CallbackService {
 public:
  // Streams without a message yet.
  static constexpr std::size_t kMostSilent = 256;

  // `listener` must outlive the server that the service is registered with.
  explicit ControlService(LinkListener& listener) : listener_(listener) {}

  grpc::ServerBidiReactor<v1::Frame, v1::Frame>* Connect(
      grpc::CallbackServerContext* context) override;

 private:
  LinkListener& listener_;
  SilentStreams silent_{kMostSilent};
};

}  // namespace torpor::server
