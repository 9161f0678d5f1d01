#include "client_shim/core/transport/reconnection.h"

#include <sys/socket.h>

#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/transport/frame_codec.h"
#include "client_shim/core/transport/handshake.h"
#include "client_shim/core/transport/unix_socket.h"

namespace torpor::shim {

// The first attempt comes a pause late: a torpord that is about to end may still listen.
Reconnection::Reconnection(const ReconnectOptions& options, Time now)
    : options_(options),
      until_(now + options.patience),
      next_attempt_(now + pauses_.Next()),
      why_("no torpord has come in its place") {}

Reconnection::~Reconnection() { Drop(); }

Reconnection::State Reconnection::Advance(Time now) {
  if (state_ != State::kTrying) return state_;
  if (!stream_ && now >= next_attempt_) Connect(now);
  if (stream_) Hear(now);
  if (state_ == State::kTrying && now >= until_) state_ = State::kGivenUp;
  if (state_ == State::kRefused || state_ == State::kGivenUp) Drop();
  return state_;
}

void Reconnection::Connect(Time now) {
  Result<UniqueFd, int> socket = ConnectUnix(options_.socket, SOCK_STREAM, now);
  next_attempt_ = now + pauses_.Next();
  if (!socket) {
    why_ = std::string("no torpord answers: ") + std::strerror(socket.failure().code);
    return;
  }
  stream_ = std::make_unique<GrpcStream>(options_.http2, std::move(socket).value(), kControlMethod);
  ForkGuard::Watch(stream_->fd());
  stream_->Send(Framed(wire::EncodeMessage(wire::ClientMessage(options_.resume))));
}

void Reconnection::Hear(Time now) {
  stream_->Transfer();
  std::span<const std::uint8_t> payload;
  if (stream_->Next(payload)) {
    wire::ServerMessage answer;
    if (!wire::DecodeMessage(payload, answer))
      return Refuse(cudaErrorInsufficientDriver, kOtherVersion);
    return TakeAnswer(answer);
  }
  if (!stream_->closed()) return;
  if (stream_->was_aborted())
    return Refuse(cudaErrorDevicesUnavailable, "it refused the session: " + stream_->why_closed());
  why_ = stream_->why_closed();
  next_attempt_ = now + pauses_.Next();
  Drop();
}

void Reconnection::TakeAnswer(const wire::ServerMessage& answer) {
  if (const auto* const reply = std::get_if<wire::ResumeReply>(&answer)) {
    if (reply->error != 0)
      return Refuse(static_cast<cudaError_t>(reply->error),
                    "it refused the session: " + reply->message);
    reply_ = *reply;
    state_ = State::kResumed;
  } else if (const auto* const refusal = std::get_if<wire::HelloReply>(&answer);
             refusal && refusal->error != 0) {
    // Understood in all versions of the protocol.
    Refuse(static_cast<cudaError_t>(refusal->error), "it refused the session: " + refusal->message);
  } else {
    Refuse(cudaErrorDevicesUnavailable, "it sent an unexpected answer");
  }
}

void Reconnection::Refuse(cudaError_t error, const std::string& why) {
  state_ = State::kRefused;
  error_ = error;
  why_ = why;
}

std::unique_ptr<GrpcStream> Reconnection::TakeStream() {
  ForkGuard::Unwatch(stream_->fd());
  return std::move(stream_);
}

void Reconnection::Drop() {
  if (stream_) ForkGuard::Unwatch(stream_->fd());
  stream_.reset();
}

}  // namespace torpor::shim
