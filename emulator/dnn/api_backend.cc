// The only engine of the backend API. Other entries are in nvidia/cudnn/backend_entries.cc.
#include <memory>

#include "emulator/dnn/graph_execution.h"
#include "emulator/dnn/handle.h"
#include "emulator/library/unsupported.h"
#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"
#include "nvidia/cudnn/graph_checks.h"

using namespace torpor::emulator;  // NOLINT: this file mostly defines the C interface

namespace torpor {
namespace {

constexpr std::int64_t kOnlyEngine = 0;

// Reports an obstacle once for each kind.
cudnnStatus_t Check(const DnnGraph& graph) {
  const char* const obstacle = DnnGraphObstacle(graph);
  if (obstacle == nullptr) return CUDNN_STATUS_SUCCESS;
  DnnSay(std::string("cuDNN's operation graphs with ") + obstacle + " are not supported");
  return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
}

// Computes in full precision and always in the same order.
DnnEngine Description() { return {.engine = kOnlyEngine}; }

// Checks the tensors' memory and queues the execution of a plan.
cudnnStatus_t QueueExecution(const cudnnContext& context, const DnnExecution& execution) {
  // The descriptors may be destroyed before the work runs.
  const std::shared_ptr<const DnnBackendGraph> graph = execution.plan->graph;
  const DnnGraph& value = graph->graph;
  std::vector<AccessExtent> extents;
  std::vector<void*> addresses;
  extents.reserve(value.tensors.size());
  addresses.reserve(value.tensors.size());
  for (std::uint32_t i = 0; i < value.tensors.size(); ++i) {
    void* const address = reinterpret_cast<void*>(execution.addresses[i]);
    addresses.push_back(address);
    if (value.tensors[i].is_virtual != 0) continue;
    extents.push_back({address, DnnBytes(value.tensors[i].shape), DnnUseOf(value, i).is_written});
  }
  const bool queued = QueueWork(*context.driver, context.stream, extents,
                                [graph, addresses] { ExecuteGraph(graph->graph, addresses); });
  return queued ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER;
}

}  // namespace

// Every graph without an obstacle has one recommendation.
cudnnStatus_t DnnRecommend(cudnnHandle_t, const DnnGraph& graph, cudnnBackendHeurMode_t,
                           std::vector<DnnEngineChoice>& choices) {
  const cudnnStatus_t status = Check(graph);
  if (status == CUDNN_STATUS_SUCCESS) choices = {{Description(), {}}};
  return status;
}

cudnnStatus_t DnnDescribe(cudnnHandle_t, const DnnGraph& graph, std::int64_t engine,
                          DnnEngine& description) {
  if (engine != kOnlyEngine) return CUDNN_STATUS_NOT_SUPPORTED;
  description = Description();
  return Check(graph);
}

cudnnStatus_t DnnPlan(cudnnHandle_t, const DnnGraph& graph, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes) {
  if (config.engine != kOnlyEngine || !config.knobs.empty()) return CUDNN_STATUS_NOT_SUPPORTED;
  workspace_bytes = 0;
  return Check(graph);
}

void DnnSay(const std::string& line) { SayOnce(line); }

}  // namespace torpor

extern "C" cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                             cudnnBackendDescriptor_t pack) {
  return WithHandle(handle, [&](cudnnContext& context) {
    torpor::DnnExecution execution;
    const torpor::DnnVerdict verdict = torpor::DnnReadExecution(plan, pack, execution);
    if (verdict.ok()) return torpor::QueueExecution(context, execution);
    torpor::DnnSay("cudnnBackendExecute: " + verdict.what);
    return verdict.status;
  });
}
