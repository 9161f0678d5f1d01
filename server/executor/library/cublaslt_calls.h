#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/cuda_api/cublaslt_dispatch.h"
#include "server/executor/library/cublaslt_library.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_device_memory.h"

namespace torpor::executor {

// Executes one session's cuBLASLt calls. Not thread-safe; call with the device current.
class CublasLtCalls final : public cuda_api::CublasLtHandler {
 public:
  // `library`, `streams` and `memory` must outlive the object.
  CublasLtCalls(CublasLtLibrary& library, StreamSet& streams, SessionMemory& memory)
      : library_(library), streams_(streams), memory_(memory) {}

  // Handlers of the client's calls. All addresses must lie in the session's memory.
  cuda_api::CallStatus CublasLtMatmul(const wire::CublasLtMatmul& command) override;
  cuda_api::CallStatus CublasLtMatmulHeuristic(
      const wire::CublasLtMatmulHeuristic& command,
      wire::CublasLtMatmulHeuristicResult& result) override;

 private:
  // Algorithms for one problem, best first.
  using Answers = std::vector<cublasLtMatmulHeuristicResult_t>;

  // Returns the library's algorithms for a problem, from the cache if possible. `answers` is valid
  // until the next call of Ask.
  cublasStatus_t Ask(const wire::CublasLtMatmulHeuristic& question, const Answers*& answers);
  // Returns the algorithm that the command refers to, or null to leave the choice to the library.
  const cublasLtMatmulAlgo_t* Find(const wire::CublasLtMatmul& command);

  CublasLtLibrary& library_;
  StreamSet& streams_;
  SessionDeviceMemory memory_;
  absl::flat_hash_map<std::string, Answers> answers_;  // by the encoded question
};

}  // namespace torpor::executor
