#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Results of remoted commands.
namespace torpor::cuda_api {

// The call's result in the enumeration of the library (cudaError_t, cublasStatus_t); 0 is
// success. A message allocates, so only failures have one.
struct [[nodiscard]] CallStatus {
  std::int32_t code = 0;
  std::string message;  // the fault, the place and the remedy, for the client's log

  bool ok() const { return code == 0; }
};

inline CallStatus CallFailed(std::int32_t code, std::string message) {
  return {code, std::move(message)};
}

// One object serves command after command, to reuse the buffer.
struct CallOutcome {
  bool is_sync = false;  // the command wants a Reply
  CallStatus status;
  std::vector<std::uint8_t> result;  // encoded, for a Reply; empty unless the call succeeded
};

}  // namespace torpor::cuda_api
