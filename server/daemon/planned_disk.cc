#include "server/daemon/planned_disk.h"

#include <utility>
#include <vector>

#include "emulator/node/topology.h"
#include "server/daemon/cuda_libraries.h"
#include "server/daemon/faulty_files.h"

namespace torpor::server {

absl::StatusOr<std::unique_ptr<Files>> PlannedDisk(const Config& config,
                                                   const std::string& program_dir) {
  const std::string& path = config.emulator_topology;
  if (path.empty()) return nullptr;
  const auto libraries = FindCudaLibraries(config, program_dir);
  if (!libraries.ok() || !libraries->is_emulated) return nullptr;
  const auto text = SystemFiles().Read(path);
  if (!text.ok()) return nullptr;  // CheckFiles says so
  auto topology = emulator::ParseTopology(std::string(text->begin(), text->end()), path);
  if (!topology.ok()) return absl::InvalidArgumentError(topology.failure().message);
  std::vector<emulator::DiskFault>& plan = topology->plan.disk;
  if (plan.empty()) return nullptr;
  return std::make_unique<FaultyFiles>(SystemFiles(), std::move(plan));
}

}  // namespace torpor::server
