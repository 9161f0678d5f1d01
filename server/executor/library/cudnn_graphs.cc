#include "server/executor/library/cudnn_graphs.h"

#include <utility>

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxChoices = 256;

bool Fits(const CudnnPlan& plan, std::uint64_t workspace_bytes) {
  return plan.status == CUDNN_STATUS_SUCCESS && plan.real->workspace_bytes() <= workspace_bytes;
}

}  // namespace

bool CudnnGraphs::exist() const {
  const cuda_api::CudnnFunctions& f = functions_;
  return f.cudnnBackendCreateDescriptor != nullptr && f.cudnnBackendDestroyDescriptor != nullptr &&
         f.cudnnBackendSetAttribute != nullptr && f.cudnnBackendGetAttribute != nullptr &&
         f.cudnnBackendFinalize != nullptr && f.cudnnBackendExecute != nullptr;
}

cudnnStatus_t CudnnGraphs::Choices(cudnnHandle_t handle, const DnnGraph& graph,
                                   cudnnBackendHeurMode_t mode,
                                   std::vector<DnnEngineChoice>& choices) {
  const std::shared_ptr<const RealGraph> real = plans_.Graph(handle, graph);
  if (real->status() != CUDNN_STATUS_SUCCESS) return real->status();
  BackendDescriptor heuristic(functions_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, real->descriptor());
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  heuristic.Finalize();
  if (heuristic.status() != CUDNN_STATUS_SUCCESS) return heuristic.status();
  for (const BackendDescriptor& config : heuristic.Descriptors(
           CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaxChoices)) {
    DnnEngineChoice choice;
    if (ReadChoice(config, choice)) choices.push_back(std::move(choice));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CudnnGraphs::Describe(cudnnHandle_t handle, const DnnGraph& graph,
                                    std::int64_t engine, DnnEngine& description) {
  const std::shared_ptr<const RealGraph> real = plans_.Graph(handle, graph);
  if (real->status() != CUDNN_STATUS_SUCCESS) return real->status();
  BackendDescriptor descriptor(functions_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  descriptor.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, real->descriptor());
  descriptor.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, engine);
  descriptor.Finalize();
  if (descriptor.status() == CUDNN_STATUS_SUCCESS) description = DescriptionOf(descriptor);
  return descriptor.status();
}

cudnnStatus_t CudnnGraphs::WorkspaceOf(cudnnHandle_t handle, const DnnGraph& graph,
                                       const DnnEngineConfig& config, std::uint64_t& bytes) {
  const std::shared_ptr<const CudnnPlan> plan = plans_.Plan(handle, graph, config);
  if (plan->status == CUDNN_STATUS_SUCCESS) bytes = plan->real->workspace_bytes();
  return plan->status;
}

std::shared_ptr<const CudnnPlan> CudnnGraphs::AnyThatFits(cudnnHandle_t handle,
                                                          const DnnGraph& graph,
                                                          std::uint64_t workspace_bytes) {
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<DnnEngineChoice> choices;
    if (Choices(handle, graph, mode, choices) != CUDNN_STATUS_SUCCESS) continue;
    for (const DnnEngineChoice& choice : choices) {
      std::shared_ptr<const CudnnPlan> plan =
          plans_.Plan(handle, graph, {choice.engine.engine, choice.knobs});
      if (Fits(*plan, workspace_bytes)) return plan;
    }
  }
  return nullptr;
}

cudnnStatus_t CudnnGraphs::Execute(cudnnHandle_t handle, const DnnGraph& graph,
                                   const DnnEngineConfig& config, std::span<void* const> addresses,
                                   void* workspace, std::uint64_t workspace_bytes) {
  std::shared_ptr<const CudnnPlan> plan = plans_.Plan(handle, graph, config);
  const cudnnStatus_t planned = plan->status;
  if (!Fits(*plan, workspace_bytes)) plan = AnyThatFits(handle, graph, workspace_bytes);
  if (plan == nullptr)
    return planned == CUDNN_STATUS_SUCCESS ? CUDNN_STATUS_NOT_SUPPORTED : planned;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  ids.reserve(graph.tensors.size());
  pointers.reserve(graph.tensors.size());
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].is_virtual != 0) continue;
    ids.push_back(graph.tensors[i].id);
    pointers.push_back(addresses[i]);
  }
  BackendDescriptor pack(functions_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           std::span<const std::int64_t>(ids));
  pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           std::span<void* const>(pointers));
  pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.Finalize();
  if (pack.status() != CUDNN_STATUS_SUCCESS) return pack.status();
  return functions_.cudnnBackendExecute(handle, plan->real->descriptor().real(), pack.real());
}

}  // namespace torpor::executor
