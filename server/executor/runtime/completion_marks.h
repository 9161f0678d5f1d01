#pragma once

#include <cstdint>

#include "proto/cuda_api/call_outcome.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_window.h"

namespace torpor::executor {

// Writes completion marks to the session's window in stream order. A client that sent a command
// with a mark waits for the mark, so the mark is written however the command went. Not
// thread-safe; call with the device current.
class CompletionMarks {
 public:
  // All must outlive this.
  CompletionMarks(const Device& device, StreamSet& streams, SessionWindow& window)
      : device_(device), streams_(streams), window_(window) {}

  // Has `value` written to `slot` after all earlier work of `stream`; at once if there is no such
  // stream. A `value` of 0 asks for no mark. Returns `status` of the command, or, if that is ok,
  // how enqueueing the mark went.
  cuda_api::CallStatus Write(cuda_api::CallStatus status, std::uint64_t stream, std::uint32_t slot,
                             std::uint64_t value);

 private:
  const Device& device_;
  StreamSet& streams_;
  SessionWindow& window_;
};

}  // namespace torpor::executor
