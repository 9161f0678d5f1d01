#pragma once

#include <mutex>
#include <set>
#include <string>

#include "client_shim/core/settings.h"

namespace torpor::shim {

// Writes whole lines to stderr, each message in one write, so that messages never split the
// program's own output. Thread-safe but for set_level.
class Log {
 public:
  void set_level(LogLevel level) { level_ = level; }  // before other threads log

  void Warn(const std::string& message) const { Write(LogLevel::kWarn, message); }
  void Debug(const std::string& message) const { Write(LogLevel::kDebug, message); }
  // As Warn, at most once for the same key.
  void WarnOnce(const std::string& key, const std::string& message);

 private:
  void Write(LogLevel level, const std::string& message) const;

  LogLevel level_ = LogLevel::kWarn;
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace torpor::shim
