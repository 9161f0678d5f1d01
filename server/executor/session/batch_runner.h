#pragma once

#include <atomic>
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
#include "server/executor/runtime/session_runtime.h"

namespace torpor::executor {

// Destination of replies: receives one encoded wire::Reply for each answered call.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void Send(std::span<const std::uint8_t> reply) = 0;
};

// Splits a batch's frame into header and commands, which point into `frame`. InvalidArgument if the
// frame has no header.
struct ReceivedBatch {
  wire::BatchHeader header;
  std::span<const std::uint8_t> commands;

  bool IsDone() const { return header.command_count == 0; }
};
absl::StatusOr<ReceivedBatch> ReadBatch(std::span<const std::uint8_t> frame);

// Reads a frame that holds a single kAttach command. InvalidArgument if the frame holds anything
// else.
absl::StatusOr<wire::Attach> ReadAttach(std::span<const std::uint8_t> frame);

// The CUDA objects of one session on this executor, and the execution of the session's batches. Not
// thread-safe; call with the device current.
class BatchRunner {
 public:
  // All arguments must outlive the runner. `lease` is the session's, as other threads set it.
  BatchRunner(const Device& device, ModuleLibrary& library, MathLibraries& libraries,
              KernelOutput& output, SessionMemory& memory, const std::atomic<std::uint64_t>& lease)
      : output_(output),
        runtime_(
            device, library, memory,
            [this](const wire::GraphCommand& command) { return RunInGraph(command); }, &lease),
        cublas_(libraries.cublas, runtime_.streams(), memory),
        cublaslt_(libraries.cublaslt, runtime_.streams(), memory),
        cudnn_(libraries.cudnn, runtime_.streams(), memory) {}

  // Executes the batch's commands in order, as many as there is room for on the GPU (PendingWork),
  // and takes them off the batch; IsDone then tells whether that was all. An error means that the
  // client is broken or hostile; the commands before the bad command were executed. Results of
  // calls go to `replies`; a sticky error stays in `lost()`.
  absl::Status Run(ReceivedBatch& batch, ReplySink& replies);

  // Returns the first sticky error; nullopt while the context is intact.
  const std::optional<cuda_api::CallStatus>& lost() const { return lost_; }

  SessionModules& modules() { return runtime_.modules(); }
  SessionArrays& arrays() { return runtime_.arrays(); }
  // Recreates textures after a move of the session's memory on the GPU. Requires that no work runs.
  absl::Status RebindTextures() { return runtime_.RebindTextures(); }
  // Whether a texture reads the session's memory.
  bool has_memory_textures() const { return runtime_.has_memory_textures(); }
  // Drops what the driver holds for the memory's present place: the memory leaves this GPU, and no
  // work runs.
  void EndResidency() { runtime_.graphs().EndResidency(); }
  // The session's graphs, for tests.
  const GraphSet& graphs() { return runtime_.graphs(); }
  // Waits for all of the session's work and drops the output of kernels; see
  // StreamSet::SynchronizeUntil.
  CUresult Drain(TimePoint deadline);

 private:
  absl::Status RunCommand(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                          ReplySink& replies);
  // Hands a call to the handlers of the call's library.
  absl::Status Dispatch(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                        cuda_api::CallOutcome& outcome);
  cuda_api::CallStatus RunInGraph(const wire::GraphCommand& command);
  void RunDrain();
  // Returns library handles to their pools; sessions hold handles only while running. Requires that
  // all work is done.
  void ReleaseLibraryHandles();
  // Keeps the first error of an asynchronous call for the next reply.
  void Remember(cudaError_t error, const std::string& message);
  void Answer(std::uint32_t call_id, ReplySink& replies);
  void PassOutputOn(ReplySink& replies);
  void Send(wire::Reply& reply, ReplySink& replies);

  KernelOutput& output_;
  SessionRuntime runtime_;
  CublasCalls cublas_;
  CublasLtCalls cublaslt_;
  CudnnCalls cudnn_;

  // The first error of an asynchronous call that no reply has reported.
  cudaError_t async_error_ = cudaSuccess;
  std::string async_message_;
  std::optional<cuda_api::CallStatus> lost_;

  // Reused from command to command.
  cuda_api::CallOutcome outcome_;
  cuda_api::CallOutcome graph_outcome_;  // of a command inside the graph launch of outcome_
  wire::Reply reply_;
  std::vector<std::uint8_t> encoded_;
};

}  // namespace torpor::executor
