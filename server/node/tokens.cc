#include "server/node/tokens.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/config/token_file.h"

namespace torpor::server {

absl::StatusOr<std::map<std::string, std::string>> ReadTokens(const Config& config) {
  std::map<std::string, std::string> tokens;
  std::map<std::string, std::string> owners;
  for (const auto& [function_name, function] : config.functions) {
    for (const InstanceConfig& instance : InstancesOf(function)) {
      if (instance.token_file.empty()) continue;
      const std::string name = FullNameOf(function, instance);
      absl::StatusOr<std::string> token = ReadTokenFile(instance.token_file, name);
      if (!token.ok()) {
        return absl::Status(token.status().code(),
                            absl::StrCat(instance.token_file, ": ", token.status().message()));
      }
      const auto [owner, is_new] = owners.emplace(*token, name);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat("functions ", owner->second, " and ", name,
                                                       " have the same token; each needs its own"));
      }
      tokens[name] = *std::move(token);
    }
  }
  return tokens;
}

}  // namespace torpor::server
