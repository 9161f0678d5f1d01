#include "server/executor/gpu/kernel_output.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/crash_text.h"
#include "server/executor/gpu/expected_failures.h"

namespace torpor::executor {
namespace {

// A quarter of a frame; also the limit for a hostile program's messages.
constexpr std::size_t kMaxPrinted = std::size_t{1} << 20;
constexpr std::size_t kMaxSaid = std::size_t{64} << 10;

// Appends `text`, which may end in a newline, as further lines.
void AppendLines(std::string& lines, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return;
  if (!lines.empty()) lines += '\n';
  lines += text;
}

}  // namespace

absl::Status KernelOutput::TakeOver(const CudaDriver& driver) {
  UniqueFd original(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  if (original.get() < 0) return absl::ErrnoToStatus(errno, "cannot keep the standard error");
  {
    const MutexLock lock(&mutex_);
    TORPOR_RETURN_IF_ERROR(printed_.TakeOver(STDOUT_FILENO));
    TORPOR_RETURN_IF_ERROR(told_.TakeOver(STDERR_FILENO));
    KeepCrashText(told_.descriptor(), original.Release());
  }
  const CUresult registered = driver.LogsRegisterCallback(&OnMessage, this, nullptr);
  if (registered != CUDA_SUCCESS) {
    spdlog::warn("the driver keeps its messages to itself: error {}", static_cast<int>(registered));
  }
  return absl::OkStatus();
}

void KernelOutput::OnMessage(void* self, CUlogLevel, char* text, std::size_t length) {
  if (ExpectedFailures::AreExpected()) return;
  auto& output = *static_cast<KernelOutput*>(self);
  const std::string_view line(text, length);
  spdlog::debug("driver: {}", line);
  const MutexLock lock(&output.mutex_);
  if (output.logged_.size() + line.size() < kMaxSaid) AppendLines(output.logged_, line);
}

bool KernelOutput::TakePrinted(std::vector<std::uint8_t>& printed) {
  const MutexLock lock(&mutex_);
  std::fflush(stdout);
  printed_.Take(printed, kMaxPrinted);
  return !printed.empty();
}

std::string KernelOutput::TakeSaid() {
  std::string said;
  std::vector<std::uint8_t> told;
  const MutexLock lock(&mutex_);
  told_.Take(told, kMaxSaid);
  AppendLines(said, {reinterpret_cast<const char*>(told.data()), told.size()});
  if (!said.empty()) spdlog::warn("driver: {}", said);
  AppendLines(said, std::exchange(logged_, {}));
  return said;
}

void KernelOutput::Discard() {
  std::vector<std::uint8_t> printed;
  while (TakePrinted(printed)) {
  }
  while (!TakeSaid().empty()) {
  }
}

}  // namespace torpor::executor
