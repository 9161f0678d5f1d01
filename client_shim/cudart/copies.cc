#include "client_shim/cudart/copies.h"

#include <algorithm>
#include <cstring>

#include "client_shim/cudart/entry.h"

namespace torpor::shim {
namespace {

// Below this a copy inside the command is cheaper than a window piece and its slot.
constexpr std::uint64_t kInlineUploadBytes = 4096;
// Long enough to keep a link busy, short enough that the executor copies one piece while the next
// is being filled.
constexpr std::uint64_t kUploadPieceBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kDownloadPieceBytes = std::uint64_t{4} << 20;
// A piece of this size leaves at once; smaller ones may share a batch.
constexpr std::uint64_t kFlushBytes = std::uint64_t{256} * 1024;

bool KindAllows(cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
      return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
      return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

}  // namespace

cudaError_t UploadPageable(const void* source, std::uint64_t bytes,
                           const std::function<cudaError_t(const UploadPart&)>& send) {
  const auto* from = static_cast<const std::uint8_t*>(source);
  if (bytes <= kInlineUploadBytes) return send({0, bytes, {from, bytes}, nullptr});
  for (std::uint64_t at = 0; at < bytes;) {
    WindowPiece piece;
    TORPOR_TRY(Core().AcquireWindow(std::min(bytes - at, kUploadPieceBytes), piece));
    std::memcpy(piece.data, from + at, piece.bytes);
    if (const cudaError_t error = send({at, piece.bytes, {}, &piece}); error != cudaSuccess) {
      Core().ReleaseWindow(piece);
      return error;
    }
    if (piece.bytes >= kFlushBytes) TORPOR_TRY(Core().Flush());
    at += piece.bytes;
  }
  return cudaSuccess;
}

cudaError_t DownloadPageable(void* destination, std::uint64_t bytes,
                             const std::function<cudaError_t(
                                 std::uint64_t at, std::uint64_t bytes, std::uint64_t window_offset,
                                 std::vector<std::uint8_t>& inline_bytes)>& ask) {
  auto* const to = static_cast<std::uint8_t*>(destination);
  std::vector<std::uint8_t> inline_bytes;
  if (bytes <= wire::kMaxInlineBytes) {
    TORPOR_TRY(ask(0, bytes, wire::kReplyInline, inline_bytes));
    if (inline_bytes.size() != bytes) return cudaErrorUnknown;
    std::memcpy(to, inline_bytes.data(), bytes);
    return cudaSuccess;
  }
  for (std::uint64_t at = 0; at < bytes;) {
    WindowPiece piece;
    TORPOR_TRY(Core().AcquireWindow(std::min(bytes - at, kDownloadPieceBytes), piece));
    const cudaError_t error = ask(at, piece.bytes, piece.offset, inline_bytes);
    if (error == cudaSuccess) std::memcpy(to + at, piece.data, piece.bytes);
    TraceBytes(0, piece.bytes);
    Core().ReleaseWindow(piece);
    TORPOR_TRY(error);
    at += piece.bytes;
  }
  return cudaSuccess;
}

cudaError_t CheckDirection(cudaMemcpyKind kind, Side from, Side to) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidMemcpyDirection;
  const bool from_device = from == Side::kDevice;
  const bool to_device = to == Side::kDevice;
  // Pinned memory is memory of the device too: CUDA takes it on either side.
  const bool allowed = KindAllows(kind, from_device, to_device) ||
                       (from == Side::kArena && KindAllows(kind, true, to_device)) ||
                       (to == Side::kArena && KindAllows(kind, from_device, true));
  const bool device_of_pageable =
      kind == cudaMemcpyDeviceToDevice && (from == Side::kPageable || to == Side::kPageable);
  return allowed && !device_of_pageable ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t FindRoute(void* to, std::uint64_t to_bytes, const void* from, std::uint64_t from_bytes,
                      cudaMemcpyKind kind, Route& route) {
  if (!to || !from) return cudaErrorInvalidValue;
  const Place target = PlaceOf(to);
  const Place source = PlaceOf(from);
  if (to_bytes > target.room || from_bytes > source.room) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckDirection(kind, source.side, target.side));
  route = {source.side, target.side, source.device, target.device};
  return cudaSuccess;
}

}  // namespace torpor::shim
