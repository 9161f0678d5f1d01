#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"

namespace torpor::sim {

// A model's request times and image sizes. Times are of one request alone on the node. Values for
// native containers and blocks are 0 if unknown.
struct ModelProfile {
  std::string name;
  Duration native{};     // in a native container
  Duration resident{};   // under Torpor, with the image on the GPU
  Duration host{};       // with the image coming from the host, alone on Profiles::pcie_bytes_per_s
  Duration peer{};       // from another GPU, alone on Profiles::nvlink_bytes_per_s
  Bytes parameters = 0;  // transferred by a swap-in
  Bytes footprint = 0;   // on a GPU under Torpor
  Bytes native_footprint = 0;  // on a GPU in a native container
  Duration cold_start{};       // until a native container can serve
  std::uint32_t blocks = 0;    // allocations that make up the image
  Duration deadline{};
};

// The parameters of all figures.
struct Profiles {
  double pcie_bytes_per_s = 0;
  double nvlink_bytes_per_s = 0;
  Bytes reserved = 0;  // of each GPU's memory
  double percentile = 0;
  Duration turnover{};     // from a request's end until its GPU is free for another
  Duration driver_call{};  // to free or allocate a block
  std::vector<ModelProfile> models;

  // Time of a transfer of `model` alone on the reference links.
  Duration HostTransfer(const ModelProfile& model) const;
  Duration PeerTransfer(const ModelProfile& model) const;
  // Fill and drain of the pipeline of transfer and execution: host or peer time beyond the longer
  // of transfer and resident run.
  Duration HostRest(const ModelProfile& model) const;
  Duration PeerRest(const ModelProfile& model) const;
};

// A transfer of an image to a GPU.
struct ImageTransfer {
  TimePoint begun;
  TimePoint arrived;
  Duration alone{};  // time of the transfer alone on the reference links
};

// Returns the end of a request that began to execute at `begin` while the image comes by `way`,
// which is not empty; `rest` is the model's. Execution follows the transfer layer by layer, and
// each hides what the other leaves room for. Where execution takes longer than the transfer, `rest`
// is the wait for the first layers, which come later in proportion as the whole transfer does.
inline TimePoint ExecutionEnd(TimePoint begin, Duration resident, const ImageTransfer& way,
                              Duration rest) {
  const double stretch = static_cast<double>((way.arrived - way.begun).count()) /
                         static_cast<double>(std::max(way.alone, Duration(1)).count());
  const Duration fill(static_cast<Duration::rep>(static_cast<double>(rest.count()) * stretch));
  return std::max(std::max(begin, way.begun + fill) + resident, way.arrived + rest);
}

// Parses a profile file (docs/simulator.md). Errors name `source` and the line.
absl::StatusOr<Profiles> ParseProfiles(const std::string& yaml, std::string_view source);
absl::StatusOr<Profiles> ReadProfiles(const std::string& path);

// The built-in profiles: tools/sim/profiles/paper.yaml.
const Profiles& PaperProfiles();

// Index of the model of that name.
absl::StatusOr<std::size_t> FindModel(const Profiles& profiles, std::string_view name);

}  // namespace torpor::sim
