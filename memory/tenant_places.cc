#include "memory/tenant_places.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/units.h"

namespace torpor::memory {

void TenantPlaces::AddSegment(PlaceRun segment) {
  TORPOR_CHECK(segment.first % slot_places_ == 0 && segment.count % slot_places_ == 0);
  users_[segment.first].resize(segment.count);
}

std::vector<PlaceRun> TenantPlaces::segments() const {
  std::vector<PlaceRun> segments;
  segments.reserve(users_.size());
  for (const auto& [first, users] : users_) segments.push_back({first, users.size()});
  return segments;
}

bool TenantPlaces::Has(std::size_t place) const {
  const auto behind = users_.upper_bound(place);
  if (behind == users_.begin()) return false;
  const auto& [first, users] = *std::prev(behind);
  return place - first < users.size();
}

std::uint32_t& TenantPlaces::UsersOf(std::size_t place) {
  const auto segment = std::prev(users_.upper_bound(place));
  return segment->second.at(place - segment->first);
}

std::optional<PlaceRun> TenantPlaces::Take(std::size_t count) {
  PlaceRun longest;
  for (const auto& [first, users] : users_) {
    for (auto begin = users.begin(); begin != users.end() && longest.count < count;) {
      begin = std::find(begin, users.end(), 0u);
      const auto end = std::find_if(begin, users.end(), [](std::uint32_t n) { return n > 0; });
      const auto length = static_cast<std::size_t>(end - begin);
      if (length > longest.count) {
        longest = {first + static_cast<std::size_t>(begin - users.begin()),
                   std::min(length, count)};
      }
      begin = end;
    }
  }
  if (longest.count == 0) return std::nullopt;
  for (std::size_t place = longest.first; place < longest.end(); ++place) Use(place);
  return longest;
}

void TenantPlaces::Use(std::size_t place) {
  ++UsersOf(place);
  with_pages_.Add({place, place + 1});
}

void TenantPlaces::Leave(std::size_t place) {
  TORPOR_CHECK(UsersOf(place) > 0);
  --UsersOf(place);
}

std::vector<PlaceRun> TenantPlaces::TakeUnusedSlots() {
  std::vector<PlaceRun> slots;
  std::size_t next = 0;
  for (const Extent& places : with_pages_.extents()) {
    next = std::max(next, RoundDown(places.begin, slot_places_));
    for (; next < places.end; next += slot_places_) {
      if (!IsSlotUsed(next)) slots.push_back({next, slot_places_});
    }
  }
  for (const PlaceRun& slot : slots) {
    for (std::size_t place = slot.first; place < slot.end(); ++place) ++UsersOf(place);
  }
  return slots;
}

bool TenantPlaces::IsSlotUsed(std::size_t first) const {
  for (std::size_t place = first; place < first + slot_places_; ++place) {
    if (is_used(place)) return true;
  }
  return false;
}

void TenantPlaces::Return(PlaceRun slot) {
  for (std::size_t place = slot.first; place < slot.end(); ++place) Leave(place);
  with_pages_.Remove({slot.first, slot.end()});
}

}  // namespace torpor::memory
