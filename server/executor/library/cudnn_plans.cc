#include "server/executor/library/cudnn_plans.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "proto/wire/codec.h"

namespace torpor::executor {
namespace {

// PyTorch keeps at most 10,000; some plans hold generated kernels.
constexpr std::size_t kMaxPlans = 4096;
constexpr std::size_t kMaxKeyBytes = 32 * kMiB;

std::string Text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string KeyOf(const DnnGraph& graph) { return Text(wire::Encoded(graph)); }

std::string KeyOf(const DnnGraph& graph, const DnnEngineConfig& config) {
  std::vector<std::uint8_t> encoded;
  wire::Writer writer(encoded);
  writer(graph);
  writer(config);
  return Text(encoded);
}

}  // namespace

CudnnPlans::CudnnPlans(const cuda_api::CudnnFunctions& functions)
    : functions_(functions),
      graphs_({kMaxPlans, kMaxKeyBytes}),
      plans_({kMaxPlans, kMaxKeyBytes}) {}

std::shared_ptr<const RealGraph> CudnnPlans::Graph(cudnnHandle_t handle, const DnnGraph& graph) {
  return graphs_.Get(KeyOf(graph),
                     [&] { return std::make_shared<RealGraph>(functions_, handle, graph); });
}

std::shared_ptr<const CudnnPlan> CudnnPlans::Plan(cudnnHandle_t handle, const DnnGraph& graph,
                                                  const DnnEngineConfig& config) {
  return plans_.Get(KeyOf(graph, config), [&] {
    auto plan = std::make_shared<CudnnPlan>();
    plan->graph = Graph(handle, graph);
    plan->status = plan->graph->status();
    if (plan->status != CUDNN_STATUS_SUCCESS) return plan;
    plan->real.emplace(functions_, *plan->graph, config);
    plan->status = plan->real->status();
    return plan;
  });
}

}  // namespace torpor::executor
