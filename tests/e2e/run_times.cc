#include "tests/e2e/run_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/metrics_page.h"
#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/node_report.h"

namespace torpor::e2e {
namespace {

constexpr std::size_t kRuns = 9;
// A request that should have found its GPU busy may come too late for that.
constexpr std::size_t kMaxTries = 3 * kRuns;

constexpr const char* kBytes = "torpor_swap_bytes_total";
constexpr const char* kSwaps = "torpor_swap_duration_seconds_count";

std::vector<std::string> ComingIn(const std::string& path) {
  return {R"(direction="in")", fmt::format(R"(path="{}")", path)};
}

Duration Median(std::vector<Duration> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string Header(const Reply& reply, const std::string& name) {
  const auto found = reply.headers.find(name);
  return found == reply.headers.end() ? "" : found->second;
}

}  // namespace

RunMeter::RunMeter(const ExampleFleet& fleet)
    : fleet_(fleet), metrics_address_(fleet.node().Status().at("metrics_address")) {}

absl::StatusOr<RunMeter::TimedReply> RunMeter::Time(std::size_t function) const {
  const TimePoint begin = SteadyClock().Now();
  TORPOR_ASSIGN_OR_RETURN(Reply reply, fleet_.Ask(function));
  return TimedReply{std::move(reply), SteadyClock().Now() - begin};
}

absl::StatusOr<Duration> RunMeter::Resident(std::size_t function) const {
  std::vector<Duration> times;
  times.reserve(kRuns);
  for (std::size_t tries = 0; tries < kMaxTries && times.size() < kRuns; ++tries) {
    TORPOR_RETURN_IF_ERROR(fleet_.AwaitIdle());
    TORPOR_ASSIGN_OR_RETURN(const TimedReply run, Time(function));
    if (Header(run.reply, "x-torpor-swap") == "resident") times.push_back(run.took);
  }
  if (times.size() == kRuns) return Median(std::move(times));
  return absl::AbortedError(fleet_.functions()[function].name + " does not stay resident");
}

absl::StatusOr<ColdRuns> RunMeter::FromHost(std::size_t function) const {
  const std::string before = ReadMetrics(metrics_address_);
  ColdRuns runs;
  std::vector<Duration> times;
  times.reserve(kRuns);
  while (times.size() < kRuns) {
    TORPOR_RETURN_IF_ERROR(EvictWhenIdle(fleet_.admin_socket(), fleet_.functions()[function].name));
    TORPOR_ASSIGN_OR_RETURN(const TimedReply run, Time(function));
    times.push_back(run.took);
    runs.gpu = std::stoi(Header(run.reply, "x-torpor-gpu"));
  }
  runs.median = Median(std::move(times));
  TORPOR_RETURN_IF_ERROR(AwaitSwapsIn("pcie", ValueOf(before, kSwaps, ComingIn("pcie")) + kRuns));
  const std::string after = ReadMetrics(metrics_address_);
  runs.bytes =
      (ValueOf(after, kBytes, ComingIn("pcie")) - ValueOf(before, kBytes, ComingIn("pcie"))) /
      kRuns;
  return runs;
}

absl::StatusOr<ColdRuns> RunMeter::FromPeer(std::size_t function, std::size_t other) const {
  const std::string before = ReadMetrics(metrics_address_);
  ColdRuns runs;
  std::vector<Duration> times;
  times.reserve(kRuns);
  for (std::size_t tries = 0; tries < kMaxTries && times.size() < kRuns; ++tries) {
    TORPOR_ASSIGN_OR_RETURN(const auto run, TimeBeside(function, other));
    if (!run) continue;
    times.push_back(run->took);
    runs.gpu = std::stoi(Header(run->reply, "x-torpor-gpu"));
  }
  if (times.size() < kRuns) {
    return absl::AbortedError(fleet_.functions()[function].name + " does not come from a peer");
  }
  runs.median = Median(std::move(times));
  // It came back to GPU 0 in the same way.
  const std::string after = ReadMetrics(metrics_address_);
  const auto grown = [&](const char* metric) {
    return ValueOf(after, metric, ComingIn("nvlink")) - ValueOf(before, metric, ComingIn("nvlink"));
  };
  runs.bytes = grown(kBytes) / std::max(grown(kSwaps), 1.0);
  return runs;
}

absl::StatusOr<std::optional<RunMeter::TimedReply>> RunMeter::TimeBeside(std::size_t function,
                                                                         std::size_t other) const {
  for (const std::size_t moved : {function, other}) {
    TORPOR_RETURN_IF_ERROR(fleet_.AwaitIdle());
    TORPOR_RETURN_IF_ERROR(
        torporctl::Load(fleet_.admin_socket(), fleet_.functions()[moved].name, 0));
  }
  auto occupant = std::async(std::launch::async, [&] { return fleet_.Ask(other).status(); });
  const absl::Status occupied = AwaitLease(0, fleet_.functions()[other].name);
  absl::StatusOr<TimedReply> run = Time(function);
  TORPOR_RETURN_IF_ERROR(occupant.get());
  TORPOR_RETURN_IF_ERROR(occupied);
  TORPOR_RETURN_IF_ERROR(run.status());
  TORPOR_RETURN_IF_ERROR(fleet_.AwaitIdle());
  if (Header(run->reply, "x-torpor-swap") != "peer") return std::nullopt;
  return std::optional(*std::move(run));
}

absl::Status RunMeter::AwaitLease(int gpu, const std::string& function) const {
  return AwaitStatus(
      fleet_.admin_socket(), fmt::format("{} runs on GPU {}", function, gpu),
      [&](const v1::NodeStatus& status) { return status.gpus(gpu).leased_to() == function; });
}

absl::Status RunMeter::AwaitSwapsIn(const std::string& path, double count) const {
  return Await(fmt::format("{:g} swaps over {} have ended", count, path), [&] {
    return ValueOf(ReadMetrics(metrics_address_), kSwaps, ComingIn(path)) >= count;
  });
}

}  // namespace torpor::e2e
