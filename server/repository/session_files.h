#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/block_states.h"
#include "memory/checkpoint.h"
#include "memory/extent_set.h"
#include "proto/wire/descriptor_socket.h"
#include "server/repository/mapped_states.h"
#include "server/repository/memory_file.h"

namespace torpor::server {

// The shared memory of one session: memory files that the client and the executors map. Image and
// host arena are as large as the node's address ranges; the client and the executors use the
// segments that the session owns. Thread-safe.
class SessionFiles {
 public:
  // The kinds of files that a session has of its own.
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
  // The same for a tenant's file, where sessions have images of `image_bytes`.
  static absl::StatusOr<std::shared_ptr<MemoryFile>> CreateTenantFile(Bytes image_bytes);
  static absl::StatusOr<std::shared_ptr<MemoryFile>> AdoptTenantFile(Bytes image_bytes,
                                                                     UniqueFd descriptor);
  SessionFiles(const SessionFiles&) = delete;
  SessionFiles& operator=(const SessionFiles&) = delete;
  ~SessionFiles();

  // Sets the file in which blocks may lie that equal blocks of the tenant's other sessions; none
  // at first. Before other threads know the object.
  void SetTenantFile(std::shared_ptr<const MemoryFile> file) { tenant_file_ = std::move(file); }

  const MemoryFile& file(wire::SharedMemory what) const;
  // The descriptor of a file; valid as long as this object. -1 if there is no tenant's file.
  int descriptor(wire::SharedMemory what) const { return file(what).descriptor(); }
  // Size of the file, of which most may be unwritten.
  Bytes size(wire::SharedMemory what) const { return file(what).size(); }

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

  // Gives all pages of the file back to the system. Keeps the states of blocks, which tell of the
  // bytes that were there. Takes about 0.1 s per gigabyte in use.
  absl::Status GiveBackPages(wire::SharedMemory what) const {
    return file(what).GiveBack({0, size(what)});
  }

  // As of which command the image is.
  memory::Checkpoint checkpoint() const { return memory::Checkpoint(*checkpoint_); }
  // Maps the states of the blocks of an extent, which is not empty.
  absl::StatusOr<MappedStates> MapStates(memory::Extent extent) const;

  // Host memory in bytes that the file really occupies.
  Bytes resident_bytes(wire::SharedMemory what) const { return file(what).resident_bytes(); }

 private:
  SessionFiles() = default;

  // Bytes of the file, of sessions with these sizes.
  static Bytes SizeOf(wire::SharedMemory what, const Sizes& sizes);
  absl::Status MapCheckpoint(const Sizes& sizes);
  // Notes zeros in the states of the blocks, if `what` is the image.
  absl::Status NoteZeros(wire::SharedMemory what, Bytes offset, Bytes bytes) const;
  // Makes a part of a block zeros wherever its bytes lie but at its own place, which becomes its
  // home in place of the tenant's file. `block`: as `states` counts.
  absl::Status ClearPartly(memory::BlockStates& states, std::size_t block,
                           memory::Extent part) const;

  std::map<wire::SharedMemory, MemoryFile> files_;
  std::shared_ptr<const MemoryFile> tenant_file_;
  memory::CheckpointRecord* checkpoint_ = nullptr;  // the mapped page of the block states
};

}  // namespace torpor::server
