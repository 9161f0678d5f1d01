#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/cuda_api/cublaslt_commands.h"

namespace torpor::shim {

// The executor's answers to questions for algorithms. Programs ask before every product, so each
// question is sent once for a device. Thread-safe.
class CublasLtHeuristics {
 public:
  // Never destroyed.
  static CublasLtHeuristics& Get();

  // Returns at most `requested` answers, best first, or the library's status if no algorithm fits.
  cublasStatus_t Ask(ClientCore& core, const wire::CublasLtProblem& problem,
                     const LtMatmulPreference& preference, std::uint32_t requested,
                     std::vector<wire::CublasLtAnswer>& answers);

  // As cublasLtHeuristicsCacheGetCapacity and ...SetCapacity; counted in questions.
  std::size_t capacity() const;
  void SetCapacity(std::size_t capacity);

 private:
  struct Known {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    std::vector<wire::CublasLtAnswer> answers;
  };

  // Look up and store an answer; a full table is emptied first.
  bool Find(const std::string& question, Known& known) const;
  void Keep(std::string question, Known known);

  mutable std::mutex mutex_;
  std::size_t capacity_ = 8192;                   // cuBLASLt's own
  std::unordered_map<std::string, Known> known_;  // by device and question
};

}  // namespace torpor::shim
