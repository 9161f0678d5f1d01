#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "proto/cuda_api/call_outcome.h"
#include "proto/wire/codec.h"

// What every generated case of a dispatch does.
namespace torpor::cuda_api {

absl::Status UnknownCall(std::uint32_t call_id);
absl::Status MalformedCall(std::uint32_t call_id, std::size_t bytes);

template <typename Command, typename Handler>
absl::Status RunStream(Handler& handler, CallStatus (Handler::*method)(const Command&),
                       std::span<const std::uint8_t> fields, CallOutcome& outcome) {
  Command command;
  wire::Reader reader(fields);
  reader(command);
  if (!reader.done()) return MalformedCall(Command::kCallId, fields.size());
  outcome.is_sync = false;
  outcome.result.clear();
  outcome.status = (handler.*method)(command);
  return absl::OkStatus();
}

template <typename Command, typename Result, typename Handler>
absl::Status RunSync(Handler& handler, CallStatus (Handler::*method)(const Command&, Result&),
                     std::span<const std::uint8_t> fields, CallOutcome& outcome) {
  Command command;
  wire::Reader reader(fields);
  reader(command);
  if (!reader.done()) return MalformedCall(Command::kCallId, fields.size());
  Result result;
  outcome.is_sync = true;
  outcome.result.clear();
  outcome.status = (handler.*method)(command, result);
  if (outcome.status.ok()) wire::Writer{outcome.result}(result);
  return absl::OkStatus();
}

}  // namespace torpor::cuda_api
