#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/wire/codec.h"

// The common part of all generated cases of a dispatch.
namespace torpor::cuda_api {

absl::Status UnknownCall(std::uint32_t call_id);
absl::Status MalformedCall(std::uint32_t call_id, std::size_t bytes);

// `method`: a member of the handler, or a function with the handler as the first parameter.
template <typename Command, typename Handler, typename Method>
absl::Status RunStream(Handler& handler, Method method, std::span<const std::uint8_t> fields,
                       CallOutcome& outcome) {
  Command command;
  wire::Reader reader(fields);
  reader(command);
  if (!reader.done()) return MalformedCall(Command::kCallId, fields.size());
  outcome.is_sync = false;
  outcome.result.clear();
  outcome.status = std::invoke(method, handler, command);
  return absl::OkStatus();
}

template <typename Command, typename Result, typename Handler, typename Method>
absl::Status RunSync(Handler& handler, Method method, std::span<const std::uint8_t> fields,
                     CallOutcome& outcome) {
  Command command;
  wire::Reader reader(fields);
  reader(command);
  if (!reader.done()) return MalformedCall(Command::kCallId, fields.size());
  Result result;
  outcome.is_sync = true;
  outcome.result.clear();
  outcome.status = std::invoke(method, handler, command, result);
  if (outcome.status.ok()) wire::Writer{outcome.result}(result);
  return absl::OkStatus();
}

}  // namespace torpor::cuda_api
