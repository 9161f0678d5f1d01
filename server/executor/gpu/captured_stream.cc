#include "server/executor/gpu/captured_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace torpor::executor {

absl::Status CapturedStream::TakeOver(int stream) {
  // A file, not a pipe: a full pipe would block a kernel before anybody waits for the kernel.
  file_.Reset(memfd_create("output of kernels", MFD_CLOEXEC));
  if (file_.get() < 0 || fcntl(file_.get(), F_SETFL, O_APPEND) != 0 ||
      dup2(file_.get(), stream) < 0) {
    return absl::ErrnoToStatus(errno, "cannot take over a standard stream");
  }
  return absl::OkStatus();
}

void CapturedStream::Take(std::vector<std::uint8_t>& text, std::size_t max_bytes) {
  text.clear();
  struct stat state {};
  if (file_.get() < 0 || fstat(file_.get(), &state) != 0) return;
  const std::size_t left = static_cast<std::uint64_t>(state.st_size) - taken_;
  if (left == 0) return;
  text.resize(std::min(left, max_bytes));
  const ssize_t got = pread(file_.get(), text.data(), text.size(), static_cast<off_t>(taken_));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  taken_ += text.size();
  // File offsets only grow; punching holes keeps the memory small.
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(taken_));
}

}  // namespace torpor::executor
