#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/checkpoint.h"
#include "memory/extent_set.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::server {

// The shared memory of one session: sealed, sparse memory files that the client and the executors
// map. Image and host arena are as large as the node's address ranges; the client and the executors
// use the segments that the session owns. Unwritten bytes cost nothing and read as zero.
// Thread-safe.
class SessionFiles {
 public:
  // All kinds of files.
  static constexpr std::array kKinds = {wire::SharedMemory::kWindow, wire::SharedMemory::kHostArena,
                                        wire::SharedMemory::kImage,
                                        wire::SharedMemory::kBlockStates};

  struct Sizes {
    Bytes image = 0;  // a multiple of wire::kImageBlockBytes
    Bytes host_arena = 0;
    Bytes window = 0;
  };

  // Creates the files. Fails if the system refuses memory or descriptors.
  static absl::StatusOr<std::unique_ptr<SessionFiles>> Create(const Sizes& sizes);
  // Takes over files that an earlier process has created with these sizes. InvalidArgument if one
  // is missing, or no sealed file of its size.
  static absl::StatusOr<std::unique_ptr<SessionFiles>> Adopt(
      const Sizes& sizes, std::map<wire::SharedMemory, UniqueFd> descriptors);
  SessionFiles(const SessionFiles&) = delete;
  SessionFiles& operator=(const SessionFiles&) = delete;
  ~SessionFiles();

  // The descriptor of a file; valid as long as this object.
  int descriptor(wire::SharedMemory what) const;
  // Size of the file, of which most may be unwritten.
  Bytes size(wire::SharedMemory what) const;

  // Gives the bytes [offset, offset + bytes) back to the system: the range reads as zero from now
  // on. Image blocks that lie wholly in the range become untouched. Takes about 0.1 s per gigabyte
  // in use.
  absl::Status Discard(wire::SharedMemory what, Bytes offset, Bytes bytes);

  // Makes image blocks that lie wholly in the range untouched, whatever bytes the file has there:
  // nobody reads them before Discard or Clear.
  absl::Status MarkUntouched(Bytes offset, Bytes bytes) const {
    return NoteZeros(wire::SharedMemory::kImage, offset, bytes);
  }

  // Writes zeros over [offset, offset + bytes) and keeps the pages, for memory that an executor has
  // pinned. Treats image blocks as Discard does.
  absl::Status Clear(wire::SharedMemory what, Bytes offset, Bytes bytes);

  // Returns the extents of the file that have pages: all others read as zero.
  absl::StatusOr<memory::ExtentSet> WrittenExtents(wire::SharedMemory what) const;
  // Read and write bytes of the file, whoever has the file mapped. Say in an error what failed.
  absl::Status Read(wire::SharedMemory what, Bytes offset, std::span<std::uint8_t> into) const;
  absl::Status Write(wire::SharedMemory what, Bytes offset,
                     std::span<const std::uint8_t> bytes) const;
  // Gives all pages of the file back to the system. Keeps the states of blocks, which tell of the
  // bytes that were there. Takes about 0.1 s per gigabyte in use.
  absl::Status GiveBackPages(wire::SharedMemory what) const;

  // As of which command the image is.
  memory::Checkpoint checkpoint() const { return memory::Checkpoint(*checkpoint_); }

  // Host memory in bytes that the file really occupies.
  Bytes resident_bytes(wire::SharedMemory what) const;

 private:
  SessionFiles() = default;

  struct File {
    UniqueFd fd;
    Bytes bytes = 0;
  };

  static absl::StatusOr<File> CreateFile(const char* name, Bytes bytes);
  absl::Status PunchHole(wire::SharedMemory what, Bytes offset, Bytes bytes) const;
  // Bytes of the file, of sessions with these sizes.
  static Bytes SizeOf(wire::SharedMemory what, const Sizes& sizes);
  absl::Status MapCheckpoint(const Sizes& sizes);
  File& file(wire::SharedMemory what);
  // Notes zeros in the states of the blocks, if `what` is the image.
  absl::Status NoteZeros(wire::SharedMemory what, Bytes offset, Bytes bytes) const;
  const File& file(wire::SharedMemory what) const;

  File image_;
  File host_arena_;
  File window_;
  File block_states_;
  memory::CheckpointRecord* checkpoint_ = nullptr;  // the mapped page of block_states_
};

}  // namespace torpor::server
