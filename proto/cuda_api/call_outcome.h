#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What carrying out a remoted command came to.
namespace torpor::cuda_api {

// The call's own result in the enumeration of its library (cudaError_t, cublasStatus_t); 0 is
// success. A message allocates, so only failures have one.
struct [[nodiscard]] CallStatus {
  std::int32_t code = 0;
  std::string message;  // says what, where and what to do; goes to the client's log

  bool ok() const { return code == 0; }
};

inline CallStatus CallFailed(std::int32_t code, std::string message) {
  return {code, std::move(message)};
}

// Reused from command to command, so that its buffer is.
struct CallOutcome {
  bool is_sync = false;  // the command wants a Reply
  CallStatus status;
  std::vector<std::uint8_t> result;  // encoded, for a Reply; empty unless the call succeeded
};

}  // namespace torpor::cuda_api
