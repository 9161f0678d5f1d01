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

// Reads functions and tenants from a text in the file's form over those of `base`, which the text
// adds to and replaces by name; `prune`: base's others go. Errors are as ParseConfig's, and so is a
// key of the node's.
absl::StatusOr<Config> ParseOver(const std::string& yaml, const std::filesystem::path& file_name,
                                 const Config& base, bool prune);

// Makes the checks across settings that LoadConfig makes; `place` begins every line of the error.
absl::Status CheckConfig(const Config& config, const std::string& place);

// Checks that the files and folders named in the configuration are readable, and that commands may
// run as the users named there. Errors are as LoadConfig's, without line numbers.
absl::Status CheckFiles(const Config& config);

}  // namespace torpor::server
