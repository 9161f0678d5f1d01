#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/cuda_api/cudart_commands.h"

// Bytes between pageable memory of the program and the executor.
namespace torpor::shim {

// A part of an upload: inside the command, or in a window piece.
struct UploadPart {
  std::uint64_t at = 0;  // offset in the source
  std::uint64_t bytes = 0;
  std::span<const std::uint8_t> inline_bytes;
  const WindowPiece* piece = nullptr;
};
// Cuts a pageable source into parts that are copied now, and sends each; never waits but for room.
cudaError_t UploadPageable(const void* source, std::uint64_t bytes,
                           const std::function<cudaError_t(const UploadPart&)>& send);

// Fetches bytes into pageable memory part by part. `ask` sends the synchronous command for
// [at, at + bytes) with the given window offset (wire::kReplyInline: into the reply) and gives
// the reply's inline bytes.
cudaError_t DownloadPageable(void* destination, std::uint64_t bytes,
                             const std::function<cudaError_t(
                                 std::uint64_t at, std::uint64_t bytes, std::uint64_t window_offset,
                                 std::vector<std::uint8_t>& inline_bytes)>& ask);

// Fills in the payload fields that all uploading commands have.
template <typename Message>
void SetPayload(const UploadPart& part, Message& message) {
  message.bytes = part.bytes;
  message.data = part.inline_bytes;
  if (!part.piece) return;
  message.payload = wire::Payload::kWindow;
  message.offset = part.piece->offset;
  message.slot = part.piece->slot;
  message.value = part.piece->value;
}

}  // namespace torpor::shim
