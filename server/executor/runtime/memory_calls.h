#pragma once

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/completion_marks.h"
#include "server/executor/runtime/downloads.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/runtime/upload_saves.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Carries out copies and fills of a session's memory of one and two dimensions. Not thread-safe;
// call with the device current.
class MemoryCalls final : public cuda_api::CudartMemoryHandler {
 public:
  // Collaborators, which must outlive the calls.
  struct Parts {
    const Device& device;
    SessionMemory& session_memory;
    const CommandMemory& memory;
    StreamSet& streams;
    CompletionMarks& marks;
    Downloads& downloads;
  };
  explicit MemoryCalls(const Parts& parts)
      : parts_(parts), saves_(parts.device, image(), parts.session_memory.is_stateless()) {}

  cuda_api::CallStatus MemcpyHtoD(const wire::MemcpyHtoD& command) override;
  cuda_api::CallStatus MemcpyDtoH(const wire::MemcpyDtoH& command,
                                  wire::MemcpyDtoHResult& result) override;
  cuda_api::CallStatus MemcpyDtoHArena(const wire::MemcpyDtoHArena& command) override;
  cuda_api::CallStatus MemcpyDtoD(const wire::MemcpyDtoD& command) override;
  cuda_api::CallStatus Memcpy2D(const wire::Memcpy2D& command) override;
  cuda_api::CallStatus Memset(const wire::Memset& command) override;
  cuda_api::CallStatus Memset2D(const wire::Memset2D& command) override;

 private:
  const CudaDriver& driver() const { return parts_.device.driver(); }
  DeviceImage& image() const { return parts_.session_memory.image(); }
  // MemcpyHtoD without the completion mark.
  cuda_api::CallStatus Upload(const wire::MemcpyHtoD& command);

  const Parts parts_;
  UploadSaves saves_;
};

}  // namespace torpor::executor
