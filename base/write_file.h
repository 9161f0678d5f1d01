#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace torpor {

// Writes a file with these contents, in place of one that is there. Blocks. An error names the path
// and the reason; the file may then have a part of the contents.
absl::Status WriteFile(const std::string& path, std::string_view contents);

}  // namespace torpor
