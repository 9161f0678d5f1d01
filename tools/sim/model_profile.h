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

// What a request of a model takes, and what its image occupies. What of native containers and of
// blocks is 0 is not known: a node that was measured may have had none.
struct ModelProfile {
  std::string name;
  Duration native{};     // in a container of its own, with the GPU's own libraries
  Duration resident{};   // under Torpor, with the image on the GPU
  Duration host{};       // with the image coming from the host, alone on Profiles::pcie_bytes_per_s
  Duration peer{};       // from another GPU, alone on Profiles::nvlink_bytes_per_s
  Bytes parameters = 0;  // what is transferred
  Bytes footprint = 0;   // on a GPU under Torpor
  Bytes native_footprint = 0;  // on a GPU with a runtime of its own
  Duration cold_start{};       // until a container of its own can serve
  std::uint32_t blocks = 0;    // that its image is allocated in
  Duration deadline{};
};

// The one set of parameters of all figures.
struct Profiles {
  double pcie_bytes_per_s = 0;
  double nvlink_bytes_per_s = 0;
  Bytes reserved = 0;  // of each GPU's memory
  double percentile = 0;
  Duration turnover{};     // from a request's end until its GPU is free for another
  Duration driver_call{};  // to free or allocate a block
  std::vector<ModelProfile> models;

  // What the transfer of `model` takes alone on these links.
  Duration HostTransfer(const ModelProfile& model) const;
  Duration PeerTransfer(const ModelProfile& model) const;
  // What is then still to be executed when the last byte has come and as much time has passed as it
  // takes resident: the fill and drain of the pipeline of transfer and execution.
  Duration HostRest(const ModelProfile& model) const;
  Duration PeerRest(const ModelProfile& model) const;
};

// An image's way to a GPU.
struct Transfer {
  TimePoint begun;
  TimePoint arrived;
  Duration alone{};  // what it takes on the links of the profiles
};

// When a request ends that began to execute at `begin`; `rest` is of its model, the way not empty.
// The execution follows the transfer through the model, so that neither hides more than the other
// leaves. Where execution takes longer than the transfer, the rest is what of the transfer it waits
// for at first, and that comes later as all of it does.
inline TimePoint ExecutionEnd(TimePoint begin, Duration resident, const Transfer& way,
                              Duration rest) {
  const double stretch = static_cast<double>((way.arrived - way.begun).count()) /
                         static_cast<double>(std::max(way.alone, Duration(1)).count());
  const Duration fill(static_cast<Duration::rep>(static_cast<double>(rest.count()) * stretch));
  return std::max(std::max(begin, way.begun + fill) + resident, way.arrived + rest);
}

// Reads a profile file (docs/simulator.md); `source` names it in errors, which say the line.
absl::StatusOr<Profiles> ParseProfiles(const std::string& yaml, std::string_view source);
absl::StatusOr<Profiles> ReadProfiles(const std::string& path);

// The shipped ones: tools/sim/profiles/paper.yaml.
const Profiles& PaperProfiles();

// Index of the model of that name.
absl::StatusOr<std::size_t> FindModel(const Profiles& profiles, std::string_view name);

}  // namespace torpor::sim
