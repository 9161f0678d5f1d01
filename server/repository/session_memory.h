#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/block_states.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::server {

// The shared memory of one session: sealed, sparse memory files that the client and the executors
// map. Bytes that nobody wrote cost nothing and read as zero. Thread-safe.
class SessionMemory {
 public:
  struct Sizes {
    Bytes image = 0;  // a multiple of wire::kImageBlockBytes
    Bytes host_arena = 0;
    Bytes window = 0;
  };

  static absl::StatusOr<std::unique_ptr<SessionMemory>> Create(const Sizes& sizes);
  ~SessionMemory();
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  // Borrowed: valid as long as this object.
  int descriptor(wire::SharedMemory what) const;
  Bytes size(wire::SharedMemory what) const;

  // Gives the bytes [offset, offset + bytes) back to the system: they read as zero from now on, and
  // blocks of an image that nobody else has bytes in are untouched again. Takes about 0.1 s a
  // gigabyte that was in use.
  absl::Status Discard(wire::SharedMemory what, Bytes offset, Bytes bytes);

  // The bytes read as zero from now on, but stay with the file: for where somebody keeps their
  // pages.
  absl::Status Clear(wire::SharedMemory what, Bytes offset, Bytes bytes);

  // Host memory that the file really occupies.
  Bytes resident_bytes(wire::SharedMemory what) const;

 private:
  SessionMemory() = default;

  struct File {
    UniqueFd fd;
    Bytes bytes = 0;
  };

  static absl::StatusOr<File> CreateFile(const char* name, Bytes bytes);
  absl::Status MapBlockStates();
  void NoteZeros(wire::SharedMemory what, Bytes offset, Bytes bytes);
  const File& file(wire::SharedMemory what) const;

  File image_;
  File host_arena_;
  File window_;
  File block_states_;
  std::span<std::uint64_t> block_words_;  // block_states_, mapped
};

}  // namespace torpor::server
