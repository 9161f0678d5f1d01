#include "client_shim/cudart/call/payload.h"

#include <algorithm>
#include <cstring>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

// Up to this size a copy inside the command costs less than a window piece and a completion slot.
constexpr std::uint64_t kInlineUploadBytes = 4096;
// Long enough to keep a link busy; short enough for the executor to copy a piece while the client
// fills the next.
constexpr std::uint64_t kUploadPieceBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kDownloadPieceBytes = std::uint64_t{4} << 20;

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

}  // namespace torpor::shim
