#include "emulator/driver/process/stream_target.h"

#include "emulator/driver/context/current_context.h"
#include "emulator/driver/process/driver.h"

namespace torpor::emulator {

CUresult FindStream(CUstream handle, StreamTarget& target) {
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    auto& stack = ContextStack();
    if (stack.empty() || stack.back().context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    target.context = stack.back().context;
    target.stream = handle == CU_STREAM_LEGACY ? target.context->legacy_stream()
                                               : target.context->PerThreadStream();
    return CUDA_SUCCESS;
  }
  const StreamObject* object = Driver::Get().streams().Get(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  target.context = object->context.lock();
  target.stream = object->stream;
  return target.context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

}  // namespace torpor::emulator
