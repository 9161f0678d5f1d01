#include "server/node/tokens.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace torpor::server {

absl::StatusOr<std::map<std::string, std::string>> ReadTokens(const Config& config) {
  std::map<std::string, std::string> tokens;
  std::map<std::string, std::string> owners;
  for (const auto& [function_name, function] : config.functions) {
    for (const InstanceConfig& instance : InstancesOf(function)) {
      if (instance.token_file.empty()) continue;
      const std::string name = FullNameOf(function, instance);
      std::ifstream file(instance.token_file);
      std::string token;
      if (!file.is_open()) {
        return absl::NotFoundError(
            absl::StrCat("function ", name, ": cannot read its token_file ", instance.token_file));
      }
      if (!(file >> token)) {
        return absl::InvalidArgumentError(
            absl::StrCat("function ", name, ": its token_file ", instance.token_file, " is empty"));
      }
      const auto [owner, is_new] = owners.emplace(token, name);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat("functions ", owner->second, " and ", name,
                                                       " have the same token; each needs its own"));
      }
      tokens[name] = token;
    }
  }
  return tokens;
}

}  // namespace torpor::server
