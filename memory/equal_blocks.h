#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "memory/tenant_places.h"

namespace torpor::memory {

// A block of an image and its content (BlockStates::content). Equal contents promise nothing:
// hashes can be forged.
struct BlockContent {
  std::size_t block = 0;
  std::uint64_t content = 0;
};

// Blocks in a row whose contents equal those of places, or of another image's blocks, in a row.
struct EqualRun {
  std::size_t block = 0;
  std::size_t other = 0;  // the place, or the other image's block
  std::size_t count = 0;

  friend bool operator==(const EqualRun&, const EqualRun&) = default;
};

// Shorter runs are not worth a copy of their own on a link.
inline constexpr std::size_t kLeastEqualBlocks = 32;

// Returns the longest run around the blocks `block` and `other`, whose contents are equal; of no
// blocks if they are not. Both lists ascend.
EqualRun RunAround(std::span<const BlockContent> blocks, std::size_t block,
                   std::span<const BlockContent> others, std::size_t other);

// Where blocks of a tenant's images and places of the tenant's file have which contents. A part of
// the blocks, by their contents one of kOneOf, stand for all: a run of kLeastEqualBlocks has such a
// block six times out of seven. Not thread-safe.
class EqualBlocks {
 public:
  static constexpr std::uint64_t kOneOf = 16;

  // A block of another image.
  struct Twin {
    SessionId session;
    std::size_t other = 0;  // its block
    std::size_t block = 0;  // the block with equal content
    std::uint64_t content = 0;
  };

  // Notes the image's blocks without a place in the tenant's file, in place of earlier notes. Of
  // equal blocks one image's are known.
  void SetBlocks(SessionId session, std::span<const BlockContent> blocks);
  void Remove(SessionId session);
  // Returns some image with a block equal to one of `blocks`, of `session`.
  std::optional<Twin> FindTwin(SessionId session, std::span<const BlockContent> blocks) const;
  // The twin has turned out to have other bytes, or too few.
  void Forget(const Twin& twin);

  void SetPlace(std::size_t place, std::uint64_t content);
  void RemovePlace(std::size_t place);
  // Returns runs of kLeastEqualBlocks or more with equal places, apart from each other.
  std::vector<EqualRun> FindPlaces(std::span<const BlockContent> blocks) const;

 private:
  struct Location {
    SessionId session;
    std::size_t block = 0;
  };

  static bool StandsForOthers(std::uint64_t content) { return (content >> 8) % kOneOf == 0; }
  bool HasAt(std::size_t place, std::uint64_t content) const;

  // Anchors of runs by content: a block of an image, or a place of the tenant's file.
  absl::flat_hash_map<std::uint64_t, Location> blocks_;
  absl::flat_hash_map<std::uint64_t, std::size_t> places_;
  std::map<SessionId, std::vector<std::uint64_t>> noted_;     // the keys in blocks_
  absl::flat_hash_map<std::size_t, std::uint64_t> contents_;  // of all places
};

}  // namespace torpor::memory
