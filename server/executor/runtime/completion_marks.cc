#include "server/executor/runtime/completion_marks.h"

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

cuda_api::CallStatus CompletionMarks::Write(cuda_api::CallStatus status, std::uint64_t stream,
                                            std::uint32_t slot, std::uint64_t value) {
  if (value == 0) return status;
  CUstream handle = nullptr;
  // Without such a stream there is no earlier work: the mark is written at once.
  const CUresult used = streams_.Use(stream, handle);
  const CUresult marked = window_.Mark(used == CUDA_SUCCESS ? handle : nullptr, slot, value);
  return status.ok() ? ToCallStatus(device_.driver(), marked, "completion mark") : status;
}

}  // namespace torpor::executor
