#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "server/config/config.h"

namespace torpor::server {

// Functions and tenants that were changed while torpord ran, each with what the configuration file
// said then. A change holds until the file says something else about the same function or tenant.
struct ConfigOverlay {
  // Settings as text, by key; null for one that there is not.
  struct Entry {             // NOLINT(bugprone-exception-escape)
    nlohmann::json changed;  // null: removed
    nlohmann::json of_file;  // null: not in the file
  };
  std::map<std::string, Entry> functions;
  std::map<std::string, Entry> tenants;

  bool is_empty() const { return functions.empty() && tenants.empty(); }
};

// Returns the overlay that makes `changed` of the file's configuration.
ConfigOverlay OverlayOf(const Config& file, const Config& changed);

struct OverlaidConfig {
  Config config;
  // The functions and tenants whose changes no longer hold, as "function digits".
  std::vector<std::string> superseded{};
};

// Applies the overlay to the file's configuration. InvalidArgument if an entry has an unknown key
// or a value out of range.
absl::StatusOr<OverlaidConfig> WithOverlay(const Config& file, const ConfigOverlay& overlay);

std::string FormatOverlay(const ConfigOverlay& overlay);
// InvalidArgument, with the place in the file, unless `text` is as FormatOverlay writes it.
absl::StatusOr<ConfigOverlay> ParseOverlay(const std::string& text,
                                           const std::filesystem::path& file_name);

}  // namespace torpor::server
