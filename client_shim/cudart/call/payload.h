#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/cuda_api/cudart_commands.h"

// Bytes between pageable memory of the program and the executor, by way of the command itself or of
// the session's window. All functions use the device in use.
namespace torpor::shim {

// A part of an upload: inside the command, or in a piece of the window.
struct UploadPart {
  std::uint64_t at = 0;  // offset in the source
  std::uint64_t bytes = 0;
  std::span<const std::uint8_t> inline_bytes;
  const WindowPiece* piece = nullptr;
};
// Copies a pageable source into parts and passes each part to `send`. The source is free for reuse
// on return. Waits only for room in the window.
cudaError_t UploadPageable(const void* source, std::uint64_t bytes,
                           const std::function<cudaError_t(const UploadPart&)>& send);

// Fetches bytes into pageable memory part by part. `ask` sends the synchronous command for
// [at, at + bytes) with the given window offset (wire::kReplyInline: into the reply) and stores
// the reply's inline bytes.
cudaError_t DownloadPageable(void* destination, std::uint64_t bytes,
                             const std::function<cudaError_t(
                                 std::uint64_t at, std::uint64_t bytes, std::uint64_t window_offset,
                                 std::vector<std::uint8_t>& inline_bytes)>& ask);

// Fills in the payload fields common to all uploading commands.
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
