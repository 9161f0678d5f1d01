#include "client_shim/cublas/cublas_call.h"

#include "client_shim/stream_work.h"

namespace torpor::shim {

cublasStatus_t CublasCall::FindCaptured(std::shared_ptr<const CapturedHandle>& captured) {
  ClientCore& core = *torpor_client_core();
  StreamGate* const gate = core.stream_gate();
  if (!gate || !gate->IsCapturing(handle_->CurrentStream(core))) return CUBLAS_STATUS_SUCCESS;
  return CublasStatusOf(CapturedHandle::Find(core, handle_->wanted, captured));
}

cublasStatus_t CublasCall::Capture(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                   std::shared_ptr<const CapturedHandle> captured) {
  StreamGate* const gate = torpor_client_core()->stream_gate();
  return CublasStatusOf(
      gate->Capture(handle_->wanted.stream, {call_id, fields}, std::move(captured)));
}

cublasStatus_t CublasCall::Enqueue(std::uint32_t call_id, std::span<const std::uint8_t> fields) {
  if (const cudaError_t error = handle_->SendSettings(*torpor_client_core()))
    return CublasStatusOf(error);
  return CublasStatusOf(EnqueueOn(handle_->wanted.stream, {call_id, fields}));
}

cublasStatus_t CublasCall::Call(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                std::vector<std::uint8_t>& result) {
  ClientCore& core = *torpor_client_core();
  if (const cudaError_t error = handle_->SendSettings(core)) return CublasStatusOf(error);
  CallReply reply;
  if (const cudaError_t error = CallOn(handle_->wanted.stream, {call_id, fields}, reply))
    return CublasStatusOf(error);
  if (reply.status != CUBLAS_STATUS_SUCCESS && !reply.message.empty())
    core.WarnOnce(reply.message, reply.message);
  result = std::move(reply.result);
  return static_cast<cublasStatus_t>(reply.status);
}

}  // namespace torpor::shim
