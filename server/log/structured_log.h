#pragma once

#include <spdlog/common.h>

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

// The log of our programs: one line an event on stderr, with an RFC 3339 time in UTC.
//   text  2026-11-21T04:24:10.123Z info  request function=digits status=200
//   json  {"time":"2026-11-21T04:24:10.123Z","level":"info","message":"request",...}
// spdlog::info and its kin write events without fields; LogEvent adds fields.
namespace torpor::server {

// Replaces spdlog's default logger. `level` as in spdlog::level::from_str. Call once, at start.
void SetUpLog(std::string_view level, bool is_json);

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

void LogEvent(spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields);

}  // namespace torpor::server
