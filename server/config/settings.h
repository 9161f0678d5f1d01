#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/config/config.h"

namespace torpor::server {

// One line of the configuration: what a file, the environment and the command line share. The
// key `http_address` is TORPOR_HTTP_ADDRESS in the environment and --http-address on the command
// line.
template <typename Target>
struct Setting {
  std::string_view key;
  std::string_view value_name;    // for help: SIZE, DURATION, ...
  std::string_view default_text;  // what `set` would read as Target's default; empty: unset
  std::string_view help;
  bool is_path = false;  // relative paths in a file are relative to the file's folder
  // Reads the text into the target; an error says what is wrong with the text.
  absl::Status (*set)(Target& target, std::string_view text);
};

// Every setting of Config but `functions`, in the order of the documentation.
std::span<const Setting<Config>> NodeSettings();

// Every setting of a tenant.
std::span<const Setting<TenantConfig>> TenantSettings();

// Every setting of a function.
std::span<const Setting<FunctionConfig>> FunctionSettings();

// Those of a function that may change while torpord runs: its objective, and what else only the
// scheduler needs to know.
std::span<const std::string_view> ChangeableSettings();

// A setting and its text, as in a file.
using SettingText = std::pair<std::string, std::string>;

// Changes some of these. An error, that says what is wrong, leaves the function as it was.
absl::Status ChangeFunction(FunctionConfig& function, std::span<const SettingText> changes);

// "http_address" as "TORPOR_HTTP_ADDRESS" and as "--http-address".
std::string EnvironmentName(std::string_view key);
std::string FlagName(std::string_view key);

}  // namespace torpor::server
