#include "client_shim/cublas/cublas_call.h"

namespace torpor::shim {

cublasStatus_t CublasCall::Enqueue(std::uint32_t call_id, std::span<const std::uint8_t> fields) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = handle_->SendSettings(core)) return CublasStatusOf(error);
  const Command command{call_id, fields};
  const std::uint64_t stream = handle_->wanted.stream;
  if (StreamGate* const gate = core.stream_gate()) {
    if (gate->IsCapturing(stream)) return CublasStatusOf(gate->Capture(stream, command));
    if (const cudaError_t error = gate->Await(stream)) return CublasStatusOf(error);
  }
  return CublasStatusOf(core.Enqueue(command));
}

cublasStatus_t CublasCall::Call(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                std::vector<std::uint8_t>& result) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = handle_->SendSettings(core)) return CublasStatusOf(error);
  if (StreamGate* const gate = core.stream_gate())
    if (const cudaError_t error = gate->Await(handle_->wanted.stream)) return CublasStatusOf(error);
  CallReply reply;
  if (const cudaError_t error = core.Call({call_id, fields}, reply)) return CublasStatusOf(error);
  if (reply.status != CUBLAS_STATUS_SUCCESS && !reply.message.empty())
    core.WarnOnce(reply.message, reply.message);
  result = std::move(reply.result);
  return static_cast<cublasStatus_t>(reply.status);
}

}  // namespace torpor::shim
