#include "base/write_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace torpor {

absl::Status WriteFile(const std::string& path, std::string_view contents) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (file.flush()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::generic_category().message(errno)));
}

}  // namespace torpor
