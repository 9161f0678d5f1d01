#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "base/result.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/transport/grpc_stream.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The opening exchange of every connection to the daemon: the client introduces itself, the daemon
// answers. The stream stays open for the session.
struct Handshake {
  const Nghttp2* http2 = nullptr;  // static
  std::unique_ptr<GrpcStream> control;
  wire::ServerMessage answer;  // an acceptance
};

// Connects to the daemon, sends `hello` (a Hello, DeviceHello or Inquiry) and waits for the answer
// until `deadline`. The failure's code is the error of the program's call; the message tells the
// user the cause and the remedy.
Result<Handshake, cudaError_t> ShakeHands(const Settings& settings,
                                          const wire::ClientMessage& hello, Deadline deadline);

// Asks the daemon for the devices of the function and their free memory, on a connection of its
// own. Opens no session. Logs and returns ShakeHands' failure; cudaErrorInsufficientDriver for an
// answer that does not describe the devices.
cudaError_t Inquire(const Settings& settings, wire::InquiryReply& reply);

// Describes this process, with the settings' token.
wire::Hello HelloOf(const Settings& settings);

}  // namespace torpor::shim
