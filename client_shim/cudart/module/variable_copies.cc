#include "client_shim/cudart/module/variable_copies.h"

#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/payload.h"

namespace torpor::shim {

cudaError_t UploadToVariable(const VariablePart& part, const void* from, std::uint64_t bytes) {
  wire::MemcpyToSymbol command;
  command.module = part.module;
  command.variable = part.name;
  command.stream = part.stream;
  return UploadPageable(from, bytes, [&](const UploadPart& piece) {
    command.variable_offset = part.offset + piece.at;
    SetPayload(piece, command);
    return Send(command, piece.piece);
  });
}

cudaError_t DownloadFromVariable(const VariablePart& part, void* to, std::uint64_t bytes) {
  const auto fetch = [&](std::uint64_t at, std::uint64_t count, std::uint64_t window_offset,
                         std::vector<std::uint8_t>& inline_bytes) -> cudaError_t {
    wire::MemcpyFromSymbol command;
    command.module = part.module;
    command.variable = part.name;
    command.variable_offset = part.offset + at;
    command.stream = part.stream;
    command.bytes = count;
    command.window_offset = window_offset;
    wire::MemcpyFromSymbolResult result;
    TORPOR_TRY(Ask(command, result));
    inline_bytes.assign(result.data.begin(), result.data.end());
    return cudaSuccess;
  };
  return DownloadPageable(to, bytes, fetch);
}

}  // namespace torpor::shim
