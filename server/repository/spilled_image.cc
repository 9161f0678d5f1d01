#include "server/repository/spilled_image.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <future>
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
  TORPOR_ASSIGN_OR_RETURN(ExtentSet written, session.file(kImage).Written());
  for (const Extent& extent : unused.extents()) written.Remove(extent);
  return PiecesOf(written.extents());
}

// The disk's work on one piece, at the same time as the work in memory on another.
class DiskWork {
 public:
  DiskWork() = default;
  DiskWork(const DiskWork&) = delete;
  DiskWork& operator=(const DiskWork&) = delete;
  // Before the buffers of pieces go.
  ~DiskWork() { (void)End(); }

  void Begin(std::function<absl::Status()> work) {
    // Without another thread the work is done by End.
    work_ = std::async(std::launch::async | std::launch::deferred, std::move(work));
  }
  // Waits, and gives the status of the work; OK without work.
  absl::Status End() { return work_.valid() ? work_.get() : absl::OkStatus(); }

 private:
  std::future<absl::Status> work_;
};

// Fills the buffer with a piece, padded as it will be on the disk.
absl::StatusOr<std::span<const std::uint8_t>> Load(const SessionFiles& session, SpilledPiece& piece,
                                                   const PieceBuffer& buffer) {
  const std::span<std::uint8_t> bytes = buffer.first(piece.bytes);
  TORPOR_RETURN_IF_ERROR(session.file(kImage).Read(piece.offset, bytes));
  piece.hash = XXH3_64bits(bytes.data(), bytes.size());
  const std::span<std::uint8_t> padded = buffer.first(BytesOnDisk(piece.bytes));
  std::fill(padded.begin() + static_cast<std::ptrdiff_t>(piece.bytes), padded.end(), 0);
  return padded;
}

absl::Status WritePieces(OpenFile& file, const SessionFiles& session,
                         std::vector<SpilledPiece>& pieces) {
  const std::array<PieceBuffer, 2> buffers;
  DiskWork writing;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    TORPOR_ASSIGN_OR_RETURN(const auto padded, Load(session, pieces[i], buffers[i % 2]));
    TORPOR_RETURN_IF_ERROR(writing.End());
    writing.Begin([&file, at, padded] { return file.Write(at, padded); });
    at += padded.size();
  }
  TORPOR_RETURN_IF_ERROR(writing.End());
  // A page cache tells of a full disk only here.
  return file.Sync();
}

// Writes a piece, read from `at` of the file, to its place.
absl::Status PutBack(const SessionFiles& session, const SpilledPiece& piece,
                     std::span<const std::uint8_t> bytes, const std::string& path,
                     std::uint64_t at) {
  if (XXH3_64bits(bytes.data(), bytes.size()) == piece.hash) {
    return session.file(kImage).Write(piece.offset, bytes);
  }
  return absl::DataLossError(absl::StrCat(path, " has other bytes at ", at,
                                          " than were written there: the disk is failing"));
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
  const std::array<PieceBuffer, 2> buffers;
  DiskWork reading;
  std::uint64_t next = 0;  // in the file
  const auto begin_reading = [&](std::size_t i) {
    if (i == image.pieces.size()) return;
    const std::span<std::uint8_t> padded = buffers[i % 2].first(BytesOnDisk(image.pieces[i].bytes));
    reading.Begin([&file, at = next, padded] { return file->Read(at, padded); });
    next += padded.size();
  };
  begin_reading(0);
  for (std::size_t i = 0; i < image.pieces.size(); ++i) {
    const SpilledPiece& piece = image.pieces[i];
    const std::uint64_t at = next - BytesOnDisk(piece.bytes);
    TORPOR_RETURN_IF_ERROR(reading.End());
    begin_reading(i + 1);
    TORPOR_RETURN_IF_ERROR(PutBack(session, piece, buffers[i % 2].first(piece.bytes), path, at));
  }
  return absl::OkStatus();
}

}  // namespace torpor::server
