#include "server/supervisor/process_record.h"

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/kept_file.h"

namespace torpor::server {
namespace {

// Of the fields after the command's name, which are counted from 3 in proc(5).
constexpr int kStartTimeField = 22;

}  // namespace

std::optional<ProcessIdentity> IdentityOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text, '\0') && text.empty()) return std::nullopt;
  // The command's name, in parentheses, may contain anything.
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  std::string field;
  for (int number = 3; number < kStartTimeField; ++number) {
    fields >> field;
    const bool is_zombie = number == 3 && field == "Z";
    if (is_zombie) return std::nullopt;
  }
  ProcessIdentity identity{.pid = pid};
  if (!(fields >> identity.start_ticks)) return std::nullopt;
  return identity;
}

UniqueFd OpenProcess(const ProcessIdentity& process) {
  UniqueFd descriptor(pidfd_open(process.pid, 0));
  // Read after the descriptor was opened, the identity is the descriptor's.
  if (!descriptor || IdentityOf(process.pid) != process) return UniqueFd();
  return descriptor;
}

bool KillAndAwait(const ProcessIdentity& process, Duration patience) {
  const UniqueFd descriptor = OpenProcess(process);
  if (!descriptor) return true;
  pidfd_send_signal(descriptor.get(), SIGKILL, nullptr, 0);
  const TimePoint until = SteadyClock().Now() + patience;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock().Now());
    pollfd ended = {descriptor.get(), POLLIN, 0};
    const int ready = poll(&ended, 1, std::max(0, static_cast<int>(left.count())));
    if (ready > 0) return true;
    if (ready == 0) return false;  // < 0: a signal
  }
}

absl::Status WriteProcessRecord(const std::string& path, const ProcessRecord& record) {
  const std::string text =
      fmt::format("{} {} {}\n", record.process.pid, record.process.start_ticks, record.command);
  return ReplaceFile(SystemFiles(), path, BytesOf(text), {});
}

std::optional<ProcessRecord> ReadProcessRecord(const std::string& path) {
  std::ifstream file(path);
  ProcessRecord record;
  if (!(file >> record.process.pid >> record.process.start_ticks)) return std::nullopt;
  file >> record.command;
  return record.process.pid > 0 ? std::optional(record) : std::nullopt;
}

}  // namespace torpor::server
