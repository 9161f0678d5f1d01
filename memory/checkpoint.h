#pragma once

#include <array>
#include <cstdint>

#include "base/units.h"

namespace torpor::memory {

// A session's last checkpoint, in memory that processes share: its number, and by the number's
// parity the last command whose work it contains. Zeros describe a new image.
struct CheckpointRecord {
  std::uint32_t number = 0;
  std::uint32_t is_exceeded = 0;     // blocks may have versions above the number
  std::uint32_t is_overwritten = 0;  // a write-back goes over the checkpoint's bytes
  std::uint32_t reserved = 0;
  std::array<std::uint64_t, 2> commands{};
};

// The record has a page of its own.
inline constexpr Bytes kCheckpointPageBytes = 4096;

// As of which command of its session a host image is: a view of a record that torpord and all
// executors share and that outlives each process. One process at a time writes.
class Checkpoint {
 public:
  // `record` must outlive this object.
  explicit Checkpoint(CheckpointRecord& record) : record_(record) {}

  // Grows by one with each checkpoint; 0 before the first.
  std::uint32_t number() const;
  // The last command whose work the checkpoint contains; 0 before the first.
  std::uint64_t saved_command() const;
  // Whether the image can be had as of saved_command(), apart from uploads that are final.
  bool is_whole() const;
  // Whether blocks may have versions above the number.
  bool is_exceeded() const;

  // Call before a write-back gives the first block a version above the number.
  void NoteExceeded();
  // Call before a write-back copies over the checkpoint's bytes.
  void NoteOverwritten();
  // The versions above the number have been undone.
  void NoteUndone();
  // Makes the image, with all versions of blocks, the next checkpoint: it has all changes up to
  // `command`. A smaller command than known comes from an executor that has not had the session's
  // latest commands; the known one stays.
  void Commit(std::uint64_t command);

 private:
  CheckpointRecord& record_;
};

}  // namespace torpor::memory
