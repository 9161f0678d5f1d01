#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "memory/block_states.h"
#include "memory/extent_set.h"
#include "server/repository/memory_file.h"

namespace torpor::server {

// The states of some of an image's blocks, mapped: a map of all states would take gigabytes of
// addresses a session. Movable; for one thread at a time.
class MappedStates {
 public:
  // Maps the states of the blocks of `extent`, of the image, which is not empty, and perhaps of
  // some blocks around. `file` and `checkpoint` are the session's; the latter outlives the object.
  static absl::StatusOr<MappedStates> Map(const MemoryFile& file,
                                          memory::CheckpointRecord& checkpoint,
                                          memory::Extent extent);
  MappedStates(MappedStates&& other) noexcept
      : records_(std::exchange(other.records_, {})),
        first_block_(other.first_block_),
        states_(std::move(other.states_)) {}
  MappedStates& operator=(MappedStates&&) = delete;
  ~MappedStates();

  // Number of the image's block that `states` and `records` count as 0.
  std::size_t first_block() const { return first_block_; }
  memory::BlockStates& states() { return states_; }
  std::span<memory::BlockRecord> records() const { return records_; }

 private:
  MappedStates(std::span<memory::BlockRecord> records, std::size_t first_block,
               memory::CheckpointRecord& checkpoint);

  std::span<memory::BlockRecord> records_;
  std::size_t first_block_;
  memory::BlockStates states_;
};

}  // namespace torpor::server
