#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/repository/session_files.h"

// Images that lie on a disk in place of host memory.
namespace torpor::server {

// Bytes of an image file, whole in the spill file. The pieces lie there one behind the other, each
// from a multiple of kDirectBytes on.
struct SpilledPiece {
  Bytes offset = 0;        // in the image file
  Bytes bytes = 0;         // at most kSpillPieceBytes
  std::uint64_t hash = 0;  // XXH3 of the bytes

  friend bool operator==(const SpilledPiece&, const SpilledPiece&) = default;
};

inline constexpr Bytes kSpillPieceBytes = 4 * kMiB;

// What a spill file has of an image. A plain record.
struct SpilledImage {
  std::vector<SpilledPiece> pieces;

  Bytes bytes() const;  // of the pieces
  friend bool operator==(const SpilledImage&, const SpilledImage&) = default;
};

// Both block for as long as the disk takes, and may be called on any thread. Errors are Unavailable
// with path and reason.

// Writes all pages of the image file into a new file at `path`, but for bytes in `unused`. Returns
// once the file is on the disk. After an error there is no file.
absl::StatusOr<SpilledImage> WriteSpilledImage(Files& disk, const std::string& path,
                                               const SessionFiles& session,
                                               const memory::ExtentSet& unused);

// Writes the bytes back to their places. DataLoss if the file has others than were written; then,
// and after any error, a part of the image may be there.
absl::Status ReadSpilledImage(Files& disk, const std::string& path, const SpilledImage& image,
                              const SessionFiles& session);

}  // namespace torpor::server
