#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace torpor::server {

// Reads the instances' secrets from their token_file, by FullNameOf, without surrounding white
// space. Errors are ReadTokenFile's, and
// InvalidArgument if a secret is used by two instances.
absl::StatusOr<std::map<std::string, std::string>> ReadTokens(const Config& config);

}  // namespace torpor::server
