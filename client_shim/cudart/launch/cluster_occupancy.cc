// The entries about the occupancy of clusters.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/launch/launch.h"
#include "client_shim/cudart/module/modules.h"

namespace torpor::shim {
namespace {

// Asks the executor about a launch: the clusters that fit the GPU at once, or the blocks of the
// largest cluster.
cudaError_t AskAboutClusters(int* count, const void* function, const cudaLaunchConfig_t* config,
                             bool largest) {
  if (!count || !config || (config->numAttrs > 0 && !config->attrs)) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  ClientKernel* kernel = nullptr;
  TORPOR_TRY(UseKernel(function, kernel));
  Launch launch{config->gridDim, config->blockDim, config->dynamicSmemBytes, nullptr, 0};
  for (unsigned i = 0; i < config->numAttrs; ++i)
    TORPOR_TRY(ApplyAttribute(config->attrs[i], launch));
  wire::OccupancyClusters question;
  question.kernel = kernel->here().wire;
  question.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  question.block = {launch.block.x, launch.block.y, launch.block.z};
  question.shared_bytes = static_cast<std::uint32_t>(launch.shared_bytes);
  question.flags = launch.flags;
  question.largest = largest ? 1 : 0;
  wire::OccupancyClustersResult result;
  TORPOR_TRY(Ask(question, result));
  *count = result.count;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  return Entry([&] { return AskAboutClusters(clusters, function, config, false); });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  return Entry([&] { return AskAboutClusters(blocks, function, config, true); });
}
