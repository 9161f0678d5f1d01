#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "memory/extent_set.h"

namespace torpor::memory {

// A row of places in a tenant's file, or of blocks.
struct PlaceRun {
  std::size_t first = 0;
  std::size_t count = 0;

  std::size_t end() const { return first + count; }
  friend bool operator==(const PlaceRun&, const PlaceRun&) = default;
};

// Which places of a tenant's file are homes, and of how many blocks. Not thread-safe.
class TenantPlaces {
 public:
  // `slot_places`: places behind which the system's pages come and go together.
  explicit TenantPlaces(std::size_t slot_places) : slot_places_(slot_places) {}

  // Adds free places: whole slots, which no earlier segment has.
  void AddSegment(PlaceRun segment);
  std::vector<PlaceRun> segments() const;
  bool Has(std::size_t place) const;

  // Takes at most `count` (> 0) free places in a row: the first row of so many or, without one, the
  // longest. Each place has one user, the caller. Nullopt if no place is free.
  std::optional<PlaceRun> Take(std::size_t count);
  // Use counts another block with its home at the place; Leave discounts one.
  void Use(std::size_t place);
  void Leave(std::size_t place);
  bool is_used(std::size_t place) const { return UsersOf(place) > 0; }

  // Places behind which the file may have pages.
  std::size_t with_pages() const { return with_pages_.total_bytes(); }
  // Takes all slots without a user that may have pages. The caller gives their pages back, and then
  // calls Return.
  std::vector<PlaceRun> TakeUnusedSlots();
  void Return(PlaceRun slot);

 private:
  bool IsSlotUsed(std::size_t first) const;
  std::uint32_t& UsersOf(std::size_t place);
  std::uint32_t UsersOf(std::size_t place) const {
    return const_cast<TenantPlaces*>(this)->UsersOf(place);
  }

  const std::size_t slot_places_;
  std::map<std::size_t, std::vector<std::uint32_t>> users_;  // of segments, by first place
  ExtentSet with_pages_;                                     // of places
};

}  // namespace torpor::memory
