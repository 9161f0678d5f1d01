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

// The sources of a configuration. Flags override the environment, which overrides the file.
struct ConfigSources {
  std::filesystem::path file;  // empty: no file
  // Returns the value of an environment variable.
  std::function<std::optional<std::string>(const std::string&)> environment;
  std::vector<std::pair<std::string, std::string>> flags;  // key (http_address) and text
};

// Returns a variable of this process's environment; for ConfigSources.
std::optional<std::string> ProcessEnvironment(const std::string& name);

// Reads and validates the whole configuration. An error has one line for each mistake: file:line
// (or the flag or variable), the mistake, and how to mend it. Checks text only: opens no file but
// the configuration. Errors: NotFound for a missing file, InvalidArgument for mistakes.
absl::StatusOr<Config> LoadConfig(const ConfigSources& sources);

// Likewise for the text of a file. `file_name` serves messages and relative paths.
absl::StatusOr<Config> ParseConfig(const std::string& yaml, const std::filesystem::path& file_name);

// Checks that the files and folders named in the configuration are readable. Errors are as
// LoadConfig's, without line numbers.
absl::Status CheckFiles(const Config& config);

}  // namespace torpor::server
