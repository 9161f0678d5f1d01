#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"

namespace torpor::executor {

// A standard stream of the process (STDOUT_FILENO, STDERR_FILENO), redirected to memory from which
// the text is taken. Not thread-safe; anybody may write meanwhile.
class CapturedStream {
 public:
  CapturedStream() = default;
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  // Redirects descriptor `stream` to this object. Call once.
  absl::Status TakeOver(int stream);

  // Replaces `text` by at most `max_bytes` of what was written since the last call; leaves `text`
  // empty before TakeOver.
  void Take(std::vector<std::uint8_t>& text, std::size_t max_bytes);

  // The file with the text that was not taken. -1 before TakeOver.
  int descriptor() const { return file_.get(); }

 private:
  UniqueFd file_;  // only ever appended to
  std::uint64_t taken_ = 0;
};

}  // namespace torpor::executor
