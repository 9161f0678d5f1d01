#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "base/result.h"
#include "client_shim/core/grpc_stream.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/unix_socket.h"
#include "proto/wire/control_messages.h"

namespace torpor::shim {

// How every connection to the daemon begins: the client says who it is, the daemon answers.
struct Handshake {
  const Nghttp2* http2 = nullptr;
  std::unique_ptr<GrpcStream> control;
  wire::ServerMessage answer;  // no refusal
};

// Connects to the daemon, says `hello` (a Hello, DeviceHello or Inquiry) and waits for the answer.
// The failure's message is for people and tells how to mend it.
Result<Handshake, cudaError_t> ShakeHands(const Settings& settings,
                                          const wire::ClientMessage& hello, Deadline deadline);

// Who this process is.
wire::Hello HelloOf(const Settings& settings);

}  // namespace torpor::shim
