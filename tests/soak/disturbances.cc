#include "tests/soak/disturbances.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "tests/e2e/await_status.h"
#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/node_report.h"

namespace torpor::soak {
namespace {

// More would leave too little room to the others.
constexpr std::size_t kMaxPinned = 4;

// Whether the daemon knows of all requests that were sent.
bool HaveAllArrived(const std::string& admin_socket, std::uint64_t sent) {
  const auto functions = torporctl::FetchFunctions(admin_socket);
  if (!functions.ok()) return false;
  std::uint64_t arrived = 0;
  for (const v1::FunctionStatus& function : functions->functions()) arrived += function.requests();
  return arrived == sent;
}

// What is on the GPU to stay: neither on its way there nor from there.
Bytes ResidentBytes(const std::string& admin_socket, int gpu) {
  Bytes bytes = 0;
  const auto functions = torporctl::FetchFunctions(admin_socket);
  if (!functions.ok()) return bytes;
  for (const v1::FunctionStatus& function : functions->functions()) {
    const auto& resident = function.resident_gpus();
    const bool is_there = std::find(resident.begin(), resident.end(), gpu) != resident.end();
    if (is_there) bytes += function.image_bytes();
  }
  return bytes;
}

absl::Status CheckpointAll(const std::string& admin_socket, int gpu) {
  const auto functions = torporctl::FetchFunctions(admin_socket);
  if (!functions.ok()) return functions.status();
  for (const v1::FunctionStatus& function : functions->functions()) {
    const auto& resident = function.resident_gpus();
    if (std::find(resident.begin(), resident.end(), gpu) == resident.end()) continue;
    absl::Status status = torporctl::Checkpoint(admin_socket, function.name());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The executor that serves the GPU, once there is one.
absl::StatusOr<pid_t> ReadyExecutor(const std::string& admin_socket, int gpu) {
  pid_t executor = 0;
  const auto is_ready = [&](const v1::NodeStatus& status) {
    executor = static_cast<pid_t>(status.gpus(gpu).executor_pid());
    return status.gpus(gpu).state() == "ready";
  };
  TORPOR_RETURN_IF_ERROR(e2e::AwaitStatus(admin_socket, "an executor is ready", is_ready));
  return executor;
}

// While no request comes any more: `sent` are all.
absl::Status WaitUntilIdle(const std::string& admin_socket, int gpu, std::uint64_t sent) {
  const auto is_idle = [&](const v1::NodeStatus& status) {
    return status.queued_requests() == 0 && status.gpus(gpu).leased_to().empty() &&
           status.gpus(gpu).used_bytes() == ResidentBytes(admin_socket, gpu);
  };
  TORPOR_RETURN_IF_ERROR(e2e::Await("all requests that were sent have arrived",
                                    [&] { return HaveAllArrived(admin_socket, sent); }));
  return e2e::AwaitStatus(admin_socket, "it is idle, as no request comes", is_idle);
}

absl::Status KillWhenInStep(const std::string& admin_socket, int gpu, pid_t executor,
                            std::uint64_t sent) {
  TORPOR_RETURN_IF_ERROR(WaitUntilIdle(admin_socket, gpu, sent));
  TORPOR_RETURN_IF_ERROR(CheckpointAll(admin_socket, gpu));
  if (kill(executor, SIGKILL) != 0) return absl::ErrnoToStatus(errno, "its executor has ended");
  const auto is_known = [&](const v1::NodeStatus& node) {
    return node.gpus(gpu).executor_pid() != executor;
  };
  return e2e::AwaitStatus(admin_socket, "the daemon knows that its executor is dead", is_known);
}

}  // namespace

Hints::Hints(std::string admin_socket, std::vector<std::string> functions, int gpus,
             Failures& failures)
    : admin_socket_(std::move(admin_socket)),
      functions_(std::move(functions)),
      gpus_(gpus),
      failures_(failures) {}

void Hints::GiveOne(std::mt19937& random) {
  const std::shared_lock lock(pause_);
  const std::string& function = functions_[random() % functions_.size()];
  const std::optional<int> gpu = static_cast<int>(random() % static_cast<unsigned>(gpus_));
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      return Note("load to a GPU", function, torporctl::Load(admin_socket_, function, gpu));
    case 3:
      return Note("load", function, torporctl::Load(admin_socket_, function, std::nullopt));
    case 4:
    case 5:
      return Note("evict", function, torporctl::Evict(admin_socket_, function));
    case 6:
      return Note("checkpoint", function, torporctl::Checkpoint(admin_socket_, function));
    default:
      return Pin(function);
  }
}

void Hints::Pin(const std::string& function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pinned_.push_back(function);
  Note("pin", function, torporctl::Pin(admin_socket_, function, true));
  if (pinned_.size() <= kMaxPinned) return;
  Note("unpin", pinned_.front(), torporctl::Pin(admin_socket_, pinned_.front(), false));
  pinned_.pop_front();
}

void Hints::EvictAll() {
  for (const std::string& function : functions_) {
    const absl::Status status = torporctl::Evict(admin_socket_, function);
    if (!status.ok()) Note("evict all", function, absl::InternalError(status.ToString()));
  }
}

void Hints::UnpinAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& function : std::exchange(pinned_, {})) {
    Note("unpin", function, torporctl::Pin(admin_socket_, function, false));
  }
}

void Hints::Note(const char* hint, const std::string& function, const absl::Status& status) {
  ++(status.ok() ? followed_ : refused_);
  // Aborted: the executor was killed meanwhile.
  if (status.ok() || absl::IsFailedPrecondition(status) || absl::IsAborted(status)) return;
  failures_.Add(fmt::format("{} {}: {}", hint, function, status.ToString()));
}

void KillExecutor(const std::string& admin_socket, int gpu, Gate& gate, Hints& hints,
                  Failures& failures) {
  const absl::StatusOr<pid_t> executor = ReadyExecutor(admin_socket, gpu);
  if (!executor.ok()) {
    return failures.Add(fmt::format("GPU {}: {}", gpu, executor.status().ToString()));
  }
  const auto pause = hints.Pause();
  gate.Close();
  const absl::Status status = KillWhenInStep(admin_socket, gpu, *executor, gate.passed());
  gate.Open();
  if (!status.ok()) failures.Add(fmt::format("GPU {}: {}", gpu, status.ToString()));
}

}  // namespace torpor::soak
