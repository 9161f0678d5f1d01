#pragma once

#include <cudnn.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace torpor::shim {

// Questions that only the library on the GPU can answer (workspaces, algorithms) and that have one
// answer for the same descriptors: each is sent once. Thread-safe.
class CudnnQuestions {
 public:
  // Never destroyed.
  static CudnnQuestions& Get();

  // `result` is the encoded answer, where the library had one.
  cudnnStatus_t Ask(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                    std::vector<std::uint8_t>& result);

 private:
  struct Known {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    std::vector<std::uint8_t> result;
  };
  // A program with more shapes than that has no use for those of long ago.
  static constexpr std::size_t kMost = 8192;

  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;  // by call id and fields
};

}  // namespace torpor::shim
