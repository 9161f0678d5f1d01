#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/wire/batch.h"
#include "server/executor/gpu/kernel_output.h"
#include "server/executor/library/cublas_calls.h"
#include "server/executor/library/cublaslt_calls.h"
#include "server/executor/library/cudnn_calls.h"
#include "server/executor/library/math_libraries.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

// Where replies go, one encoded wire::Reply a call.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void Send(std::span<const std::uint8_t> reply) = 0;
};

// A batch's header and commands. InvalidArgument if the frame has no header.
struct Batch {
  wire::BatchHeader header;
  std::span<const std::uint8_t> commands;
};
absl::StatusOr<Batch> ReadBatch(std::span<const std::uint8_t> frame);

// What is behind a frame that holds one kAttach command.
absl::StatusOr<wire::Attach> ReadAttach(std::span<const std::uint8_t> frame);

// The CUDA objects of one session on this executor, and the execution of its batches. Of one
// thread at a time, on which the device is current.
class BatchRunner {
 public:
  // All outlive this.
  BatchRunner(const Device& device, ModuleLibrary& library, MathLibraries& libraries,
              KernelOutput& output, SessionMemory& memory)
      : output_(output),
        cudart_(device, library, memory,
                [this](const wire::GraphCommand& command) { return RunInGraph(command); }),
        cublas_(libraries.cublas, cudart_.streams(), memory),
        cublaslt_(libraries.cublaslt, cudart_.streams(), memory),
        cudnn_(libraries.cudnn, cudart_.streams(), memory) {}

  // Executes the batch's commands in order. An error means that the client is broken or hostile:
  // the commands before the bad one were executed. How calls went is in replies; a sticky error is
  // in `lost()` from then on.
  absl::Status Run(const Batch& batch, ReplySink& replies);

  // The error that cost the context, once one was seen.
  const std::optional<cuda_api::CallStatus>& lost() const { return lost_; }

  SessionModules& modules() { return cudart_.modules(); }
  SessionArrays& arrays() { return cudart_.arrays(); }
  // The session's memory may lie elsewhere on this GPU than before; nothing of it runs.
  absl::Status RebindTextures() { return cudart_.RebindTextures(); }
  // Whether some read the session's memory.
  bool has_memory_textures() const { return cudart_.has_memory_textures(); }
  // Waits for all of the session's work, whose output nobody hears any more; see
  // StreamSet::SynchronizeUntil.
  CUresult Drain(TimePoint deadline);

 private:
  absl::Status RunCommand(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                          ReplySink& replies);
  // Has the library that a call belongs to carry it out.
  absl::Status Dispatch(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                        cuda_api::CallOutcome& outcome);
  cuda_api::CallStatus RunInGraph(const wire::GraphCommand& command);
  void RunDrain();
  // Gives back what sessions have only while they run. All work is done.
  void ReleaseLibraryHandles();
  void Remember(cudaError_t error, const std::string& message);
  void Answer(std::uint32_t call_id, ReplySink& replies);
  void PassOutputOn(ReplySink& replies);
  void Send(wire::Reply& reply, ReplySink& replies);

  KernelOutput& output_;
  CudartCalls cudart_;
  CublasCalls cublas_;
  CublasLtCalls cublaslt_;
  CudnnCalls cudnn_;

  // The first error of an asynchronous call that no reply has told of.
  cudaError_t async_error_ = cudaSuccess;
  std::string async_message_;
  std::optional<cuda_api::CallStatus> lost_;

  // Reused from command to command.
  cuda_api::CallOutcome outcome_;
  cuda_api::CallOutcome graph_outcome_;  // of a command inside the one whose outcome that is
  wire::Reply reply_;
  std::vector<std::uint8_t> encoded_;
};

}  // namespace torpor::executor
