#pragma once

#include <spdlog/common.h>

#include <concepts>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

// The log of torpord and torpor-executor: one line per event on stderr, with an RFC 3339 UTC time.
//   text  2026-11-21T04:24:10.123Z info  request function=digits status=200
//   json  {"time":"2026-11-21T04:24:10.123Z","level":"info","message":"request",...}
// spdlog::info and its kin write events without fields; LogEvent adds fields.
namespace torpor::server {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat { kText, kJson };

// Replaces spdlog's default logger by one that writes to `file`, open as long as the process lives,
// and drops events below `level`. Call once, before the first other thread starts.
void SetUpLog(LogLevel level, LogFormat format, std::FILE* file = stderr);

// A named value of an event. Numbers have no quotation marks in JSON; a double gets three decimals.
struct LogField {
  LogField(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}
  LogField(std::string_view field_key, const char* text) : key(field_key), value(text) {}
  LogField(std::string_view field_key, double number);
  LogField(std::string_view field_key, std::integral auto number)
      : key(field_key), value(std::to_string(number)), is_number(true) {}

  std::string_view key;
  std::string value;
  bool is_number = false;
};

// Writes one line to the log if `level` is enabled. Thread-safe.
void LogEvent(spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields);

}  // namespace torpor::server
