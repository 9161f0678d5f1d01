#include "client_shim/core/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;

std::string Text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The environment's number, clamped to [low, high]; `otherwise` if unset or malformed.
std::int64_t Number(const char* name, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  const std::string text = Text(name);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (*end != '\0') return otherwise;
  return std::clamp(value, low, high);
}

// The environment's duration, as 500ms, 60s or 2m; a number alone counts seconds. At most `high`.
// `otherwise` if unset or malformed.
milliseconds Duration(const char* name, milliseconds otherwise, milliseconds high) {
  constexpr std::pair<std::string_view, milliseconds> kUnits[] = {
      {"", std::chrono::seconds(1)},  {"s", std::chrono::seconds(1)}, {"ms", milliseconds(1)},
      {"m", std::chrono::minutes(1)}, {"h", std::chrono::hours(1)},
  };
  const std::string text = Text(name);
  char* end = nullptr;
  const std::int64_t count = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || count < 0) return otherwise;
  for (const auto& [unit, length] : kUnits)
    if (unit == end) return count > high / length ? high : count * length;
  return otherwise;
}

std::string ReadToken() {
  std::string token = Text("TORPOR_TOKEN");
  const std::string path = Text("TORPOR_TOKEN_FILE");
  if (token.empty() && !path.empty()) {
    std::ifstream file(path);
    file >> token;
  }
  return token;
}

LogLevel ReadLogLevel() {
  const std::string level = Text("TORPOR_LOG");
  if (level == "off") return LogLevel::kOff;
  if (level == "debug") return LogLevel::kDebug;
  return LogLevel::kWarn;
}

Transport ReadTransport() {
  const std::string transport = Text("TORPOR_TRANSPORT");
  if (transport == "grpc") return Transport::kGrpc;
  if (transport == "rings") return Transport::kRings;
  return Transport::kAuto;
}

TraceMode ReadTraceMode() {
  const std::string mode = Text("TORPOR_TRACE");
  if (mode.empty() || mode == "off") return TraceMode::kOff;
  if (mode == "summary") return TraceMode::kSummary;
  if (mode == "json") return TraceMode::kJson;
  return TraceMode::kUnknown;
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  if (const std::string socket = Text("TORPOR_SOCKET"); !socket.empty()) settings.socket = socket;
  settings.token = ReadToken();
  settings.log = ReadLogLevel();
  settings.transport = ReadTransport();
  settings.connect_timeout = std::chrono::milliseconds(
      Number("TORPOR_CONNECT_TIMEOUT_MS", settings.connect_timeout.count(), 1, 600'000));
  settings.reconnect_timeout =
      Duration("TORPOR_RECONNECT_TIMEOUT", settings.reconnect_timeout, std::chrono::hours(24));
  settings.batch_bytes = static_cast<std::size_t>(
      Number("TORPOR_BATCH_BYTES", static_cast<std::int64_t>(settings.batch_bytes), 1, 2 << 20));
  settings.batch_calls = static_cast<std::size_t>(
      Number("TORPOR_BATCH_CALLS", static_cast<std::int64_t>(settings.batch_calls), 0, 1'000'000));
  settings.flush_after = std::chrono::microseconds(
      Number("TORPOR_FLUSH_US", settings.flush_after.count(), 1, 1'000'000));
  settings.lease_idle = std::chrono::milliseconds(
      Number("TORPOR_LEASE_IDLE_MS", settings.lease_idle.count(), 1, 3'600'000));
  settings.replay_bytes = static_cast<std::size_t>(Number(
      "TORPOR_REPLAY_BYTES", static_cast<std::int64_t>(settings.replay_bytes), 0, 1LL << 40));
  if (const char* const devices = std::getenv("CUDA_VISIBLE_DEVICES"))
    settings.visible_devices = devices;
  settings.is_blocking = Number("CUDA_LAUNCH_BLOCKING", 0, 0, 1) != 0;
  return settings;
}

TraceSettings ReadTraceSettings() {
  constexpr std::string_view kProcess = "%p";
  TraceSettings settings{ReadTraceMode(), Text("TORPOR_TRACE_FILE")};
  if (settings.file.empty()) settings.file = "torpor-trace.%p.json";
  if (const std::size_t at = settings.file.find(kProcess); at != std::string::npos)
    settings.file.replace(at, kProcess.size(), std::to_string(getpid()));
  return settings;
}

}  // namespace torpor::shim
