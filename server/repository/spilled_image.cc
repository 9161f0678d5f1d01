#include "server/repository/spilled_image.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace torpor::server {
namespace {

using memory::Extent;
using memory::ExtentSet;

constexpr auto kImage = wire::SharedMemory::kImage;

// A buffer that direct I/O takes.
class PieceBuffer {
 public:
  PieceBuffer()
      : data_(static_cast<std::uint8_t*>(std::aligned_alloc(kDirectBytes, kSpillPieceBytes))) {
    TORPOR_CHECK(data_ != nullptr);
  }
  std::span<std::uint8_t> first(Bytes bytes) const { return {data_.get(), bytes}; }

 private:
  struct Free {
    void operator()(std::uint8_t* data) const { std::free(data); }
  };
  std::unique_ptr<std::uint8_t[], Free> data_;
};

Bytes BytesOnDisk(Bytes bytes) { return RoundUp(bytes, kDirectBytes); }

// Cuts extents into pieces of at most kSpillPieceBytes.
std::vector<SpilledPiece> PiecesOf(const std::vector<Extent>& extents) {
  std::vector<SpilledPiece> pieces;
  for (const Extent& extent : extents) {
    for (Bytes begin = extent.begin; begin < extent.end; begin += kSpillPieceBytes) {
      pieces.push_back({.offset = begin, .bytes = std::min(kSpillPieceBytes, extent.end - begin)});
    }
  }
  return pieces;
}

absl::StatusOr<std::vector<SpilledPiece>> PiecesToWrite(const SessionFiles& session,
                                                        const ExtentSet& unused) {
  TORPOR_ASSIGN_OR_RETURN(ExtentSet written, session.WrittenExtents(kImage));
  for (const Extent& extent : unused.extents()) written.Remove(extent);
  return PiecesOf(written.extents());
}

absl::Status WritePieces(OpenFile& file, const SessionFiles& session,
                         std::vector<SpilledPiece>& pieces) {
  const PieceBuffer buffer;
  std::uint64_t at = 0;
  for (SpilledPiece& piece : pieces) {
    const std::span<std::uint8_t> bytes = buffer.first(piece.bytes);
    TORPOR_RETURN_IF_ERROR(session.Read(kImage, piece.offset, bytes));
    piece.hash = XXH3_64bits(bytes.data(), bytes.size());
    const std::span<std::uint8_t> padded = buffer.first(BytesOnDisk(piece.bytes));
    std::fill(padded.begin() + static_cast<std::ptrdiff_t>(piece.bytes), padded.end(), 0);
    TORPOR_RETURN_IF_ERROR(file.Write(at, padded));
    at += padded.size();
  }
  // A page cache tells of a full disk only here.
  return file.Sync();
}

}  // namespace

Bytes SpilledImage::bytes() const {
  Bytes sum = 0;
  for (const SpilledPiece& piece : pieces) sum += piece.bytes;
  return sum;
}

absl::StatusOr<SpilledImage> WriteSpilledImage(Files& disk, const std::string& path,
                                               const SessionFiles& session,
                                               const ExtentSet& unused) {
  SpilledImage image;
  TORPOR_ASSIGN_OR_RETURN(image.pieces, PiecesToWrite(session, unused));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<OpenFile> file,
                          disk.Create(path, 0600, Caching::kDirect));
  absl::Status written = WritePieces(*file, session, image.pieces);
  if (written.ok()) return image;
  (void)disk.Remove(path);  // the first error is the one to tell
  return written;
}

absl::Status ReadSpilledImage(Files& disk, const std::string& path, const SpilledImage& image,
                              const SessionFiles& session) {
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, disk.Open(path, Caching::kDirect));
  const PieceBuffer buffer;
  std::uint64_t at = 0;
  for (const SpilledPiece& piece : image.pieces) {
    const std::span<std::uint8_t> padded = buffer.first(BytesOnDisk(piece.bytes));
    TORPOR_RETURN_IF_ERROR(file->Read(at, padded));
    const std::span<const std::uint8_t> bytes = padded.first(piece.bytes);
    if (XXH3_64bits(bytes.data(), bytes.size()) != piece.hash) {
      return absl::DataLossError(absl::StrCat(path, " has other bytes at ", at,
                                              " than were written there: the disk is failing"));
    }
    TORPOR_RETURN_IF_ERROR(session.Write(kImage, piece.offset, bytes));
    at += padded.size();
  }
  return absl::OkStatus();
}

}  // namespace torpor::server
