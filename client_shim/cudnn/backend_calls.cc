#include <vector>

#include "client_shim/c_entry.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/cudnn/cudnn_call.h"
#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/overrides.h"
#include "client_shim/cudnn/questions.h"
#include "nvidia/cudnn/backend_descriptor.h"
#include "nvidia/cudnn/backend_library.h"
#include "proto/cuda_api/cudnn_commands.h"

// Execution of the backend API's graphs, and the answers of the executor's library about graphs.
// The other entries of the backend API are in nvidia/cudnn/backend_entries.cc.
namespace torpor {
namespace {

// The core of the graph's handle, or of the current device if the program has set no handle, which
// recent cuDNN allows.
shim::ClientCore* CoreOf(cudnnHandle_t handle) {
  if (!handle) {
    shim::ClientCore& core = *torpor_client_core();
    return core.Start() == cudaSuccess ? &core : nullptr;
  }
  const shim::CudnnHandle* const found = shim::CudnnHandleTable::Get().Find(handle);
  return found ? found->core : nullptr;
}

template <typename Answer, typename Command>
cudnnStatus_t Ask(cudnnHandle_t handle, const Command& command, Answer& answer) {
  const shim::TracedCall traced("cudnnBackendFinalize");
  shim::ClientCore* const core = CoreOf(handle);
  if (!core) return CUDNN_STATUS_NOT_INITIALIZED;
  std::vector<std::uint8_t> encoded;
  const cudnnStatus_t status =
      shim::CudnnQuestions::Get().Ask(*core, Command::kCallId, wire::Encoded(command), encoded);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  wire::Reader reader(encoded);
  reader(answer);
  return reader.done() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

}  // namespace

cudnnStatus_t DnnRecommend(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                           std::vector<DnnEngineChoice>& choices) {
  wire::CudnnGraphChoices command;
  command.graph = graph;
  command.mode = mode;
  wire::CudnnGraphChoicesResult answer;
  const cudnnStatus_t status = Ask(handle, command, answer);
  choices = std::move(answer.choices);
  return status;
}

cudnnStatus_t DnnDescribe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                          DnnEngine& description) {
  wire::CudnnGraphEngine command;
  command.graph = graph;
  command.engine = engine;
  wire::CudnnGraphEngineResult answer;
  const cudnnStatus_t status = Ask(handle, command, answer);
  description = std::move(answer.description);
  return status;
}

cudnnStatus_t DnnPlan(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes) {
  wire::CudnnGraphPlan command;
  command.graph = graph;
  command.config = config;
  wire::CudnnGraphPlanResult answer;
  const cudnnStatus_t status = Ask(handle, command, answer);
  workspace_bytes = answer.workspace_bytes;
  return status;
}

void DnnSay(const std::string& line) { torpor_client_core()->WarnOnce(line, line); }

}  // namespace torpor

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  using namespace torpor;  // NOLINT
  return shim::WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    shim::CudnnCall call(handle, "cudnnBackendExecute");
    wire::CudnnGraphExecute command;
    call.Stream(command.stream);
    DnnExecution execution;
    const DnnVerdict verdict = DnnReadExecution(executionPlan, variantPack, execution);
    if (!verdict.ok()) {
      DnnSay("cudnnBackendExecute: " + verdict.what);
      return verdict.status;
    }
    command.graph = execution.plan->graph->graph;
    command.config = execution.plan->config;
    command.addresses = std::move(execution.addresses);
    command.workspace = execution.workspace;
    command.workspace_bytes = execution.workspace == 0 ? 0 : execution.plan->workspace_bytes;
    return call.SendValid(command);
  });
}
