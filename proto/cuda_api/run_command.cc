#include "proto/cuda_api/run_command.h"

#include "absl/strings/str_cat.h"

namespace torpor::cuda_api {

absl::Status UnknownCall(std::uint32_t call_id) {
  return absl::InvalidArgumentError(absl::StrCat(
      "no call has id ", call_id, ": the client's library is newer than this executor, or broken"));
}

absl::Status MalformedCall(std::uint32_t call_id, std::size_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("the ", bytes, " bytes of call ", call_id, " are not its fields"));
}

}  // namespace torpor::cuda_api
