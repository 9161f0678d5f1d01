#include "base/uuid.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace torpor {

std::string FormatUuid(std::string_view bytes) {
  if (bytes.size() != 16) return "";
  const std::string hex = absl::BytesToHexString({bytes.data(), bytes.size()});
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace torpor
