#include "base/uuid.h"

namespace torpor {

std::string FormatUuid(std::string_view bytes) {
  if (bytes.size() != 16) return "";
  std::string text = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || (i % 2 == 0 && i >= 4 && i <= 10)) text += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    for (const int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

}  // namespace torpor
