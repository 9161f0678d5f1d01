#include "tests/e2e/await_status.h"

#include <algorithm>

#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/node_report.h"

namespace torpor::e2e {

absl::Status AwaitStatus(const std::string& admin_socket, const std::string& what,
                         const std::function<bool(const v1::NodeStatus&)>& is_so,
                         Duration patience) {
  absl::Status asked;
  const auto is_over = [&] {
    const auto status = torporctl::FetchStatus(admin_socket);
    asked = status.status();
    return !status.ok() || is_so(*status);
  };
  absl::Status awaited = Await(what, is_over, patience);
  return asked.ok() ? awaited : asked;
}

bool IsIdle(const v1::NodeStatus& status) {
  return std::all_of(status.gpus().begin(), status.gpus().end(),
                     [](const v1::GpuStatus& gpu) { return gpu.leased_to().empty(); });
}

absl::Status EvictWhenIdle(const std::string& admin_socket, const std::string& function) {
  absl::Status evicted;
  const auto is_evicted = [&] {
    evicted = torporctl::Evict(admin_socket, function);
    return evicted.ok();
  };
  absl::Status awaited = Await(function + " is evicted", is_evicted);
  if (awaited.ok()) return awaited;
  return absl::DeadlineExceededError(std::string(awaited.message()) + ": " + evicted.ToString());
}

}  // namespace torpor::e2e
