#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace torpor {

// Takes equally long wherever two secrets of one length differ, so that nobody can find a secret
// byte by byte.
inline bool SecretsEqual(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace torpor
