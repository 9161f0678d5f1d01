#pragma once

#include "server/log/structured_log.h"
#include "server/settings/setting.h"
#include "server/settings/words.h"

namespace torpor::server {

template <>
inline constexpr auto kWordsOf<LogLevel> =
    std::to_array<Word<LogLevel>>({{LogLevel::kTrace, "trace"},
                                   {LogLevel::kDebug, "debug"},
                                   {LogLevel::kInfo, "info"},
                                   {LogLevel::kWarn, "warn"},
                                   {LogLevel::kError, "error"},
                                   {LogLevel::kOff, "off"}});
template <>
inline constexpr auto kWordsOf<LogFormat> =
    std::to_array<Word<LogFormat>>({{LogFormat::kText, "text"}, {LogFormat::kJson, "json"}});

// The log of torpord and of its executors.
struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;

  bool operator==(const LogSettings&) const = default;
};

// The table of LogSettings, in the order of help.
const Settings<LogSettings>& LogSettingTable();

}  // namespace torpor::server
