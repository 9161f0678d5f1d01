#include "client_shim/cublas/cublas_call.h"

#include "client_shim/stream_work.h"

namespace torpor::shim {

cublasStatus_t CublasCall::FindCaptured(std::shared_ptr<const CapturedHandle>& captured) {
  StreamGate* const gate = GateOf(handle_->core());
  if (!gate || !gate->IsCapturing(handle_->CurrentStream())) return CUBLAS_STATUS_SUCCESS;
  return CublasStatusOf(CapturedHandle::Find(handle_->core(), handle_->wanted, captured));
}

cublasStatus_t CublasCall::Capture(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                   std::shared_ptr<const CapturedHandle> captured) {
  return CublasStatusOf(
      GateOf(handle_->core())
          ->Capture(handle_->wanted.stream, {call_id, fields}, std::move(captured)));
}

cublasStatus_t CublasCall::Enqueue(std::uint32_t call_id, std::span<const std::uint8_t> fields) {
  if (const cudaError_t error = handle_->SendSettings()) return CublasStatusOf(error);
  return CublasStatusOf(EnqueueOn(handle_->core(), handle_->wanted.stream, {call_id, fields}));
}

cublasStatus_t CublasCall::Call(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                                std::vector<std::uint8_t>& result) {
  ClientCore& core = handle_->core();
  if (const cudaError_t error = handle_->SendSettings()) return CublasStatusOf(error);
  CallReply reply;
  if (const cudaError_t error = CallOn(core, handle_->wanted.stream, {call_id, fields}, reply))
    return CublasStatusOf(error);
  if (reply.status != CUBLAS_STATUS_SUCCESS && !reply.message.empty())
    core.WarnOnce(reply.message, reply.message);
  result = std::move(reply.result);
  return static_cast<cublasStatus_t>(reply.status);
}

}  // namespace torpor::shim
