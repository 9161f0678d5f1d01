#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "base/result.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/transport/grpc_stream.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The method of the streams to the daemon, as GrpcStream takes it.
inline constexpr char kControlMethod[] = "/torpor.v1.Control/Connect";
// About a daemon whose messages cannot be decoded; completes "the Torpor daemon ...: ".
inline constexpr char kOtherVersion[] =
    "it speaks another version of the protocol; install the same version of daemon and client";

// The opening exchange of every connection to the daemon: the client introduces itself, the daemon
// answers. The stream stays open for the session.
struct Handshake {
  const Nghttp2* http2 = nullptr;  // static
  std::unique_ptr<GrpcStream> control;
  wire::ServerMessage answer;  // an acceptance
};

// Connects to the daemon, sends `hello` (a Hello, DeviceHello or Inquiry) and waits for the answer
// until `deadline`. A torpord that dies meanwhile, or has just died, may have a successor: tries
// again as long. The failure's code is the error of the program's call; the message tells the
// user the cause and the remedy.
Result<Handshake, cudaError_t> ShakeHands(const Settings& settings,
                                          const wire::ClientMessage& hello, Deadline deadline);

// As ShakeHands, for a process with a session, which outlives its torpord: while no daemon answers,
// tries again until `until`.
Result<Handshake, cudaError_t> ShakeHandsUntil(const Settings& settings,
                                               const wire::ClientMessage& hello, Deadline until);

// Asks the daemon for the devices of the function and their free memory, on a connection of its
// own. Opens no session. With `has_session` as ShakeHandsUntil, for as long as sessions wait. Logs
// and returns ShakeHands' failure; cudaErrorInsufficientDriver for an answer that does not describe
// the devices.
cudaError_t Inquire(const Settings& settings, bool has_session, wire::InquiryReply& reply);

// Describes this process, with the settings' token.
wire::Hello HelloOf(const Settings& settings);

}  // namespace torpor::shim
