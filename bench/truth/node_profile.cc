#include "bench/truth/node_profile.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/status_macros.h"
#include "emulator/node/model_account.h"
#include "tests/e2e/emulated_node.h"
#include "tools/torporctl/node_report.h"

namespace torpor::truth {
namespace {

using std::chrono::milliseconds;

constexpr double kObjectiveRuns = 2.5;
constexpr double kPercentile = 0.98;

// Models that run long: their functions occupy GPU 0 while another function's image leaves.
constexpr std::size_t kOccupant = 1;
constexpr std::size_t kOtherOccupant = 2;

absl::StatusOr<MeasuredModel> MeasureModel(const e2e::ExampleFleet& fleet,
                                           const e2e::RunMeter& meter, std::size_t model) {
  std::fprintf(stderr, "measuring %s\n", fleet.models()[model].name.c_str());
  MeasuredModel measured;
  measured.name = fleet.models()[model].name;
  TORPOR_ASSIGN_OR_RETURN(measured.resident, meter.Resident(model));
  TORPOR_ASSIGN_OR_RETURN(measured.host, meter.FromHost(model));
  TORPOR_ASSIGN_OR_RETURN(measured.peer,
                          meter.FromPeer(model, model == kOccupant ? kOtherOccupant : kOccupant));
  TORPOR_ASSIGN_OR_RETURN(
      const v1::FunctionStatus status,
      torporctl::FetchFunction(fleet.admin_socket(), fleet.functions()[model].name));
  measured.footprint = status.image_bytes();
  return measured;
}

// Between GPU 0 and the one to which images went from there.
absl::StatusOr<double> PeerGbps(const NodeProfile& profile, const emulator::Topology& topology) {
  const int gpu = profile.models.front().peer.gpu;
  for (const MeasuredModel& model : profile.models) {
    if (model.peer.gpu == gpu) continue;
    return absl::AbortedError("images went from GPU 0 over links of different rates");
  }
  return topology.nvlinks.Between(0, static_cast<unsigned>(gpu)) * topology.nvlinks.gbps_per_link;
}

absl::Status End(e2e::EmulatedNode& node) {
  node.daemon().Signal(SIGTERM);
  if (node.daemon().Wait(std::chrono::seconds(60)) == 0) return absl::OkStatus();
  return absl::AbortedError("torpord does not end\n" + node.Logs());
}

// What is measured is noisy by less than a millisecond, and the simulator takes no transfer for
// quicker than none.
double AtLeast(Duration resident, Duration cold) {
  return ToMilliseconds(std::max(resident, cold));
}

}  // namespace

Duration NodeProfile::Objective(const MeasuredModel& model) {
  return milliseconds(std::llround(kObjectiveRuns * ToMilliseconds(model.host.median)));
}

std::string NodeProfile::ToYaml() const {
  std::string yaml = fmt::format(
      "version: v1\nreference: {{pcie_gbps: {}, nvlink_gbps: {}}}\nreserved_gb: {:.9f}\n"
      "percentile: {}\nturnover_ms: {:.3f}\nmodels:\n",
      pcie_gbps, nvlink_gbps, static_cast<double>(reserved) / 1e9, kPercentile,
      ToMilliseconds(turnover));
  for (const MeasuredModel& model : models) {
    yaml += fmt::format(
        "  - {{name: {}, resident_ms: {:.3f}, host_ms: {:.3f}, peer_ms: {:.3f}, "
        "parameters_mb: {:.6f}, footprint_gb: {:.9f}, deadline_ms: {:.0f}}}\n",
        model.name, ToMilliseconds(model.resident), AtLeast(model.resident, model.host.median),
        AtLeast(model.resident, model.peer.median), model.host.bytes / 1e6,
        static_cast<double>(model.footprint) / 1e9, ToMilliseconds(Objective(model)));
  }
  return yaml;
}

absl::StatusOr<NodeProfile> MeasureProfile(const TruthOptions& options) {
  const std::vector<e2e::ExampleModel> models = TruthModels();
  e2e::EmulatedNode node(TruthTopology(options), e2e::ExampleFleet::Names(models, models.size()),
                         // A copy that stayed would make the next image resident.
                         TruthSettings(options) + "keep_replicas: false\n", 1,
                         kTruthFunctionSetting);
  e2e::ExampleFleet fleet(node, models, models.size());
  node.Start();
  TORPOR_RETURN_IF_ERROR(fleet.Start());
  auto account = emulator::ModelAccount::Open(node.folder().path() + "/gpus/emulator-node");
  if (!account.ok()) return absl::AbortedError(account.failure().message);
  account->Reset();
  NodeProfile profile;
  const e2e::RunMeter meter(fleet);
  profile.models.reserve(models.size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    TORPOR_ASSIGN_OR_RETURN(MeasuredModel model, MeasureModel(fleet, meter, i));
    profile.models.push_back(std::move(model));
  }
  const emulator::ModelReport report = account->Read();
  profile.account = report.ToText();
  profile.is_valid = report.is_valid();
  TORPOR_ASSIGN_OR_RETURN(const emulator::Topology topology, SlowTopology(options));
  TORPOR_ASSIGN_OR_RETURN(const v1::NodeStatus status,
                          torporctl::FetchStatus(fleet.admin_socket()));
  profile.reserved = topology.gpus[0].memory - status.gpus(0).pool_bytes();
  profile.pcie_gbps = topology.gpus[0].pcie_gbps;
  TORPOR_ASSIGN_OR_RETURN(profile.nvlink_gbps, PeerGbps(profile, topology));
  // The log is complete when the daemon has gone.
  TORPOR_RETURN_IF_ERROR(End(node));
  std::ifstream log(node.folder().path() + "/events.log");
  profile.turnover = MedianTurnover(log);
  return profile;
}

Duration MedianTurnover(std::istream& event_log) {
  std::map<std::string, std::int64_t> revoked;  // by instance
  std::vector<std::int64_t> turnovers;
  std::string event;
  for (std::string line; std::getline(event_log, line);) {
    std::istringstream words(line);
    std::int64_t when = 0;
    std::string direction;
    std::string name;
    std::string instance;
    if (!(words >> when >> direction >> name >> instance)) continue;
    if (direction == "<") event = name;
    if (name == "revoke" && event == "request_gone") revoked[instance] = when;
    if (name != "lease_ended" || revoked.count(instance) == 0) continue;
    turnovers.push_back(when - revoked[instance]);  // NOLINT: as many as there are
    revoked.erase(instance);
  }
  if (turnovers.empty()) return {};
  const auto middle = turnovers.begin() + static_cast<std::ptrdiff_t>(turnovers.size() / 2);
  std::nth_element(turnovers.begin(), middle, turnovers.end());
  return Duration(*middle);
}

}  // namespace torpor::truth
