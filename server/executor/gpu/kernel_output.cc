#include "server/executor/gpu/kernel_output.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

namespace torpor::executor {
namespace {

// A quarter of a frame; also the limit for a hostile program's messages.
constexpr std::size_t kMaxPrinted = std::size_t{1} << 20;
constexpr std::size_t kMaxSaid = std::size_t{64} << 10;

}  // namespace

absl::Status KernelOutput::TakeOver(const CudaDriver& driver) {
  {
    const MutexLock lock(&mutex_);
    // A file, not a pipe: a full pipe would block a kernel before anybody waits for the kernel.
    file_.Reset(memfd_create("kernel output", MFD_CLOEXEC));
    if (file_.get() < 0 || fcntl(file_.get(), F_SETFL, O_APPEND) != 0 ||
        dup2(file_.get(), STDOUT_FILENO) < 0) {
      return absl::ErrnoToStatus(errno, "cannot take over the standard output");
    }
  }
  const CUresult registered = driver.LogsRegisterCallback(&OnMessage, this, nullptr);
  if (registered != CUDA_SUCCESS) {
    spdlog::warn("the driver keeps its messages to itself: error {}", static_cast<int>(registered));
  }
  return absl::OkStatus();
}

void KernelOutput::OnMessage(void* self, CUlogLevel, char* text, std::size_t length) {
  auto& output = *static_cast<KernelOutput*>(self);
  const std::string_view line(text, length);
  spdlog::warn("driver: {}", line);
  const MutexLock lock(&output.mutex_);
  if (output.said_.size() + line.size() >= kMaxSaid) return;
  if (!output.said_.empty()) output.said_ += '\n';
  output.said_ += line;
}

bool KernelOutput::Take(std::vector<std::uint8_t>& printed, std::string& said) {
  printed.clear();
  said.clear();
  const MutexLock lock(&mutex_);
  TakePrinted(printed);
  std::swap(said, said_);
  return !printed.empty() || !said.empty();
}

std::string KernelOutput::TakeSaid() {
  const MutexLock lock(&mutex_);
  return std::exchange(said_, {});
}

void KernelOutput::Discard() {
  std::vector<std::uint8_t> printed;
  std::string said;
  while (Take(printed, said)) {
  }
}

void KernelOutput::TakePrinted(std::vector<std::uint8_t>& printed) {
  if (file_.get() < 0) return;
  std::fflush(stdout);
  struct stat state {};
  if (fstat(file_.get(), &state) != 0) return;
  const std::size_t left = static_cast<std::uint64_t>(state.st_size) - taken_;
  if (left == 0) return;
  printed.resize(std::min(left, kMaxPrinted));
  const ssize_t got =
      pread(file_.get(), printed.data(), printed.size(), static_cast<off_t>(taken_));
  printed.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  taken_ += printed.size();
  // File offsets only grow; punching holes keeps the memory small.
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(taken_));
}

}  // namespace torpor::executor
