#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace torpor::shim {

enum class LogLevel { kOff, kWarn, kDebug };

// The way of batches and replies: rings in shared memory, or gRPC. kAuto takes rings where the
// executor serves them.
enum class Transport { kAuto, kGrpc, kRings };

// The session's settings from the program's environment, read once when the session opens.
struct Settings {
  std::string socket = "/run/torpor/functions/torpor.sock";  // TORPOR_SOCKET
  std::string token;                                         // TORPOR_TOKEN or TORPOR_TOKEN_FILE
  LogLevel log = LogLevel::kWarn;                            // TORPOR_LOG: off, warn, debug
  std::chrono::milliseconds connect_timeout{5000};           // TORPOR_CONNECT_TIMEOUT_MS
  // TORPOR_RECONNECT_TIMEOUT: how long a session waits for the next torpord; 0: not at all.
  std::chrono::milliseconds reconnect_timeout{60'000};
  Transport transport = Transport::kAuto;             // TORPOR_TRANSPORT: auto, grpc, rings
  std::size_t batch_bytes = std::size_t{256} * 1024;  // TORPOR_BATCH_BYTES: flushed when longer
  // TORPOR_BATCH_CALLS: flushed with so many calls; 0: a number that the session learns.
  std::size_t batch_calls = 0;
  std::chrono::microseconds flush_after{200};  // TORPOR_FLUSH_US: flushed when older
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  // CUDA_LAUNCH_BLOCKING is a number other than 0: a call that enqueues returns after completion.
  bool is_blocking = false;
  // An implicit lease is returned after one to two such periods without a call.
  std::chrono::milliseconds lease_idle{20};  // TORPOR_LEASE_IDLE_MS
  // TORPOR_REPLAY_BYTES: so much is recorded for a replay before the memory is saved; 0: nothing.
  std::size_t replay_bytes = std::size_t{64} << 20;
};

Settings ReadSettings();

enum class TraceMode { kOff, kSummary, kJson, kUnknown };

// Read once, at the program's first CUDA call.
struct TraceSettings {
  TraceMode mode = TraceMode::kOff;  // TORPOR_TRACE: off, summary, json
  std::string file;                  // TORPOR_TRACE_FILE, in which %p is the process's number
};

TraceSettings ReadTraceSettings();

}  // namespace torpor::shim
