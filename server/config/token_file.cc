#include "server/config/token_file.h"

#include <fmt/format.h>

#include <fstream>

namespace torpor::server {

absl::StatusOr<std::string> ReadTokenFile(const std::string& path, const std::string& owner) {
  std::ifstream file(path);
  std::string token;
  if (!file) {
    return absl::NotFoundError(
        fmt::format("cannot be read; function {} needs its token here", owner));
  }
  if (!(file >> token)) {
    return absl::InvalidArgumentError(
        fmt::format("is empty; write the token of function {} into it", owner));
  }
  if (token.size() < kLeastTokenLength) {
    return absl::InvalidArgumentError(
        fmt::format("the token of function {} has {} characters, and could be guessed; write {} or "
                    "more, as `head -c 32 /dev/urandom | base64` does",
                    owner, token.size(), kLeastTokenLength));
  }
  return token;
}

}  // namespace torpor::server
