#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"

namespace torpor::executor {

// What host bytes a GPU has got, block by block: BlockStates::content of each block, at the time.
// Blocks are numbered from the begin of the node's addresses, of which a session owns a few
// segments anywhere; memory is taken only for blocks near noted blocks. Not thread-safe.
class HeldContents {
 public:
  void Note(std::size_t block, std::uint64_t content);
  // Returns the content noted last; BlockStates::kNoContent if there is none.
  std::uint64_t Of(std::size_t block) const;

 private:
  static constexpr std::size_t kPageBlocks = 512;
  using Page = std::array<std::uint64_t, kPageBlocks>;

  absl::flat_hash_map<std::size_t, std::unique_ptr<Page>> pages_;  // by block / kPageBlocks
};

}  // namespace torpor::executor
