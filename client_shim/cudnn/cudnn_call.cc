#include "client_shim/cudnn/cudnn_call.h"

#include "client_shim/stream_work.h"

namespace torpor::shim {

void CudnnCall::Stream(std::uint64_t& field) {
  if (!handle_) return;
  // The calling thread may differ from the thread that set the stream.
  if (handle_->program_stream == cudaStreamPerThread)
    handle_->stream = handle_->core->PerThreadStream();
  field = handle_->stream;
}

cudnnStatus_t CudnnCall::Enqueue(std::uint32_t call_id, std::uint64_t stream,
                                 std::span<const std::uint8_t> fields) {
  return CudnnStatusOf(EnqueueOn(*handle_->core, stream, {call_id, fields}));
}

}  // namespace torpor::shim
