#include "client_shim/core/log.h"

#include <unistd.h>

#include <cerrno>

namespace torpor::shim {

void Log::Write(LogLevel level, const std::string& message) const {
  if (level > level_) return;
  const int saved_errno = errno;  // a CUDA call leaves the program's errno alone
  std::string lines = "torpor: ";
  for (const char character : message) {
    lines += character;
    if (character == '\n') lines += "torpor: ";
  }
  lines += '\n';
  if (write(STDERR_FILENO, lines.data(), lines.size()) < 0) {
    // Nobody is left to be told.
  }
  errno = saved_errno;
}

void Log::WarnOnce(const std::string& key, const std::string& message) {
  {
    std::lock_guard lock(mutex_);
    if (!warned_.insert(key).second) return;
  }
  Warn(message);
}

}  // namespace torpor::shim
