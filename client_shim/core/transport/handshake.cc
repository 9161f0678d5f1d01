#include "client_shim/core/transport/handshake.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "client_shim/core/log.h"
#include "client_shim/core/transport/connect_pauses.h"
#include "client_shim/core/transport/frame_codec.h"
#include "client_shim/core/transport/nghttp2_library.h"

namespace torpor::shim {
namespace {

// The remedy in messages about a daemon that does not answer.
constexpr char kHowToStart[] =
    ". Start torpord, or run the program with `torporctl run --standalone -- PROGRAM`; "
    "TORPOR_SOCKET names another socket.";

// Connects to the daemon's socket. The message of a failure names the socket and the remedy.
// `was_there`: a daemon has left the socket behind.
Result<std::unique_ptr<GrpcStream>, cudaError_t> Connect(const Nghttp2& http2,
                                                         const std::string& path, Deadline deadline,
                                                         bool& was_there) {
  Result<UniqueFd, int> socket = ConnectUnix(path, SOCK_STREAM, deadline);
  was_there = !socket && socket.failure().code == ECONNREFUSED;
  if (!socket && socket.failure().code == EACCES)
    return Failure<cudaError_t>{
        cudaErrorNoDevice,
        "this user may not open the Torpor daemon's socket " + path + " (Permission denied)"};
  if (!socket)
    return Failure<cudaError_t>{cudaErrorNoDevice, "no Torpor daemon answers at " + path + " (" +
                                                       std::strerror(socket.failure().code) + ")" +
                                                       kHowToStart};
  return std::make_unique<GrpcStream>(http2, std::move(socket).value(), kControlMethod);
}

// Waits for the next message. False: the message is not of this version of the protocol.
Result<bool, cudaError_t> AwaitMessage(GrpcStream& control, const std::string& path,
                                       Deadline deadline, wire::ServerMessage& message) {
  std::span<const std::uint8_t> payload;
  while (!control.Next(payload)) {
    if (control.closed())
      return Failure<cudaError_t>{
          cudaErrorNoDevice,
          "the Torpor daemon at " + path + " refused the session: " + control.why_closed()};
    control.Write();
    if (!PollUntil(control.fd(), control.EventsToWatch(), deadline))
      return Failure<cudaError_t>{
          cudaErrorNoDevice, "the Torpor daemon at " + path + " does not answer" + kHowToStart};
    control.Transfer();
  }
  return wire::DecodeMessage(payload, message);
}

// Connects once. `is_between`: a failure because a daemon has died, whose successor may answer.
Result<Handshake, cudaError_t> TryHandshake(const Nghttp2& http2, const Settings& settings,
                                            const wire::ClientMessage& hello, Deadline deadline,
                                            bool& is_between) {
  Result<std::unique_ptr<GrpcStream>, cudaError_t> control =
      Connect(http2, settings.socket, deadline, is_between);
  if (!control) return control.failure();
  Handshake handshake{&http2, std::move(control).value(), {}};
  handshake.control->Send(Framed(wire::EncodeMessage(hello)));
  const Result<bool, cudaError_t> understood =
      AwaitMessage(*handshake.control, settings.socket, deadline, handshake.answer);
  is_between = !understood && handshake.control->was_cut();
  if (!understood) return understood.failure();
  if (!*understood)
    return Failure<cudaError_t>{cudaErrorInsufficientDriver,
                                "the Torpor daemon at " + settings.socket + ": " + kOtherVersion};
  const auto* const reply = std::get_if<wire::HelloReply>(&handshake.answer);
  if (reply && reply->error != 0)
    return Failure<cudaError_t>{
        static_cast<cudaError_t>(reply->error),
        "the Torpor daemon at " + settings.socket + " refused the session: " + reply->message};
  return handshake;
}

}  // namespace

Result<Handshake, cudaError_t> ShakeHands(const Settings& settings,
                                          const wire::ClientMessage& hello, Deadline deadline) {
  std::string why;
  const Nghttp2* const http2 = Nghttp2::Load(why);
  if (!http2) return Failure<cudaError_t>{cudaErrorSharedObjectInitFailed, why};
  ConnectPauses pauses;
  for (;;) {
    bool is_between = false;
    Result<Handshake, cudaError_t> handshake =
        TryHandshake(*http2, settings, hello, deadline, is_between);
    const Deadline next = std::chrono::steady_clock::now() + pauses.Next();
    if (handshake || !is_between || next >= deadline) return handshake;
    std::this_thread::sleep_until(next);
  }
}

Result<Handshake, cudaError_t> ShakeHandsUntil(const Settings& settings,
                                               const wire::ClientMessage& hello, Deadline until) {
  ConnectPauses pauses;
  for (;;) {
    const Deadline now = std::chrono::steady_clock::now();
    Result<Handshake, cudaError_t> handshake =
        ShakeHands(settings, hello, now + settings.connect_timeout);
    if (handshake || handshake.failure().code != cudaErrorNoDevice || now >= until)
      return handshake;
    std::this_thread::sleep_for(pauses.Next());
  }
}

cudaError_t Inquire(const Settings& settings, bool has_session, wire::InquiryReply& reply) {
  Log log;
  log.set_level(settings.log);
  const Deadline now = std::chrono::steady_clock::now();
  Result<Handshake, cudaError_t> handshake =
      ShakeHandsUntil(settings, wire::Inquiry{HelloOf(settings)},
                      has_session ? now + settings.reconnect_timeout : now);
  if (!handshake) {
    log.Warn(handshake.failure().message);
    return handshake.failure().code;
  }
  auto* const answer = std::get_if<wire::InquiryReply>(&handshake->answer);
  if (!answer || answer->free_bytes.size() != answer->devices.size())
    return cudaErrorInsufficientDriver;
  reply = std::move(*answer);
  return cudaSuccess;
}

wire::Hello HelloOf(const Settings& settings) {
  wire::Hello hello;
  hello.token = settings.token;
  hello.process_id = static_cast<std::uint64_t>(getpid());
  hello.program = program_invocation_short_name;
  return hello;
}

}  // namespace torpor::shim
