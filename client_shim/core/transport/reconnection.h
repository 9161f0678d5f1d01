#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <string>

#include "client_shim/core/transport/connect_pauses.h"
#include "client_shim/core/transport/grpc_stream.h"
#include "client_shim/core/transport/nghttp2_library.h"
#include "proto/wire/control_messages.h"

namespace torpor::shim {

// What a session needs to go on with the next torpord.
struct ReconnectOptions {
  const Nghttp2& http2;
  std::string socket;                  // torpord's
  wire::Resume resume;                 // names the session
  std::chrono::milliseconds patience;  // 0: the session ends with its torpord
  bool is_told = true;                 // in the log; of a process's sessions one is enough
};

// The search of a session for the next torpord: connects to the same socket again and again, and
// introduces the session. Never waits: the owner polls. Not thread-safe.
class Reconnection {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kTrying, kResumed, kRefused, kGivenUp };

  // Begins at `now` and gives up when the patience has passed. `options` must outlive this object.
  Reconnection(const ReconnectOptions& options, Time now);
  ~Reconnection();
  Reconnection(const Reconnection&) = delete;
  Reconnection& operator=(const Reconnection&) = delete;

  // Connects if the time has come, sends, and takes what has arrived.
  State Advance(Time now);

  // The socket to poll; -1 between two attempts.
  int fd() const { return stream_ ? stream_->fd() : -1; }
  short EventsToWatch() const { return stream_->EventsToWatch(); }
  // When Advance is due, whatever poll says.
  Time NextTimer() const { return stream_ ? until_ : std::min(next_attempt_, until_); }

  // In kResumed: the answer, and the stream with all that has arrived behind.
  const wire::ResumeReply& reply() const { return reply_; }
  std::unique_ptr<GrpcStream> TakeStream();
  // In kRefused and kGivenUp: the session's error, and the reason for people.
  cudaError_t error() const { return error_; }
  const std::string& why() const { return why_; }

 private:
  void Connect(Time now);
  void Hear(Time now);
  void TakeAnswer(const wire::ServerMessage& answer);
  void Refuse(cudaError_t error, const std::string& why);
  void Drop();

  const ReconnectOptions& options_;
  const Time until_;
  ConnectPauses pauses_;
  Time next_attempt_;
  std::unique_ptr<GrpcStream> stream_;  // null between two attempts
  State state_ = State::kTrying;
  wire::ResumeReply reply_;
  cudaError_t error_ = cudaErrorDevicesUnavailable;
  std::string why_;
};

}  // namespace torpor::shim
