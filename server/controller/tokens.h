#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace torpor::server {

// The secrets of all functions that have one, by function, as their token_file holds them without
// the white space around. InvalidArgument where one is empty, or is that of another function.
absl::StatusOr<std::map<std::string, std::string>> ReadTokens(const Config& config);

}  // namespace torpor::server
