#pragma once

#include <cudnn.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// Questions for the library on the GPU (workspaces, algorithms) whose answers depend on descriptors
// only. Each question is sent once for a device. Thread-safe.
class CudnnQuestions {
 public:
  // Never destroyed.
  static CudnnQuestions& Get();

  // Sets `result` to the library's encoded answer, which is empty after most failures.
  cudnnStatus_t Ask(ClientCore& core, std::uint32_t call_id, std::span<const std::uint8_t> fields,
                    std::vector<std::uint8_t>& result);

 private:
  struct Known {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    std::vector<std::uint8_t> result;
  };
  // A program with more shapes than this no longer needs the oldest ones.
  static constexpr std::size_t kMax = 8192;

  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;  // by device, call id and fields
};

}  // namespace torpor::shim
