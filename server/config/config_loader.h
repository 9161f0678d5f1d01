#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace torpor::server {

inline constexpr const char* kDefaultConfigFile = "/etc/torpor/config.yaml";

// Where a configuration comes from; a later source overrides an earlier one: file, environment,
// flags.
struct ConfigSources {
  std::filesystem::path file;  // empty: none, every setting has its default
  // The value of an environment variable.
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::vector<std::pair<std::string, std::string>> flags;  // key (http_address) and text
};

// The value of a variable of this process's environment; for ConfigSources.
std::optional<std::string> ProcessEnvironment(const std::string& name);

// Reads and validates the whole configuration. An error holds one line for everything that is
// wrong: file:line (or the flag or variable), what, and how to mend it. Checks only text: nothing
// but the file itself is opened.
absl::StatusOr<Config> LoadConfig(const ConfigSources& sources);

// The same for text that is at hand. `file_name` is for messages and for relative paths.
absl::StatusOr<Config> ParseConfig(const std::string& yaml, const std::filesystem::path& file_name);

// Whether the files and folders that the configuration names are there and readable; lines as of
// LoadConfig, without line numbers.
absl::Status CheckFiles(const Config& config);

}  // namespace torpor::server
