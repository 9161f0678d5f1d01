#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace torpor {

// Compares two secrets. For secrets of equal length the time is independent of the contents, so an
// attacker cannot guess a secret byte by byte. The length is not protected.
inline bool SecretsEqual(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}
inline bool SecretsEqual(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  const auto text = [](std::span<const std::uint8_t> bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return SecretsEqual(text(a), text(b));
}

}  // namespace torpor
