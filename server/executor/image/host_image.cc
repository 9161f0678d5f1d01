#include "server/executor/image/host_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// A huge page. Pinned pages must stay in the file, and only whole chunks without live bytes, each
// a multiple of the unit, leave the file. A larger unit would give pages to bytes never written.
constexpr Bytes kPinUnit = 2 * kMiB;

memory::ExtentSet SetOf(const std::vector<memory::Extent>& extents) {
  memory::ExtentSet set;
  for (const memory::Extent& extent : extents) set.Add(extent);
  return set;
}

}  // namespace

HostImage::HostImage(const Device& device, SharedMapping own, SharedMapping annex,
                     const memory::BlockStates& states, bool is_pinned)
    : own_(std::move(own)),
      annex_(std::move(annex)),
      states_(states),
      is_pinned_(is_pinned),
      own_pins_(device, own_.data(), own_.bytes(), kPinUnit),
      annex_pins_(device, annex_.data(), annex_.bytes(), kPinUnit) {}

absl::Status HostImage::Map(memory::Extent extent) { return own_.Ensure(extent); }

std::vector<HostImage::Run> HostImage::RunsOf(memory::Extent extent) const {
  const Bytes unit = states_.block_bytes();
  std::vector<Run> runs;
  while (extent.begin < extent.end) {
    const Bytes block = extent.begin / unit;
    const memory::BlockHome home = states_.home(block);
    const Bytes place = memory::PlaceOfHome(block, home) * unit;
    const Run next{{extent.begin, std::min(extent.end, (block + 1) * unit)},
                   place + extent.begin % unit,
                   home != memory::kOwnPlace};
    const bool goes_on = !runs.empty() && runs.back().is_annex == next.is_annex &&
                         runs.back().begin + runs.back().extent.bytes() == next.begin;
    if (goes_on) {
      runs.back().extent.end = next.extent.end;
    } else {
      runs.push_back(next);
    }
    extent.begin = next.extent.end;
  }
  return runs;
}

absl::StatusOr<std::vector<HostImage::Part>> HostImage::PartsOf(memory::Extent extent) const {
  std::vector<Part> parts;
  for (const Run& run : RunsOf(extent)) {
    const SharedMapping& file = run.is_annex ? annex_ : own_;
    TORPOR_RETURN_IF_ERROR(file.Ensure(run.place()));
    parts.push_back({run.extent, file.data() + run.begin});
  }
  return parts;
}

absl::StatusOr<std::vector<HostImage::Part>> HostImage::PinnedPartsOf(memory::Extent extent) {
  if (!is_pinned_) return PartsOf(extent);
  std::vector<Part> parts;
  for (const Run& run : RunsOf(extent)) {
    const memory::Extent place = run.place();
    TORPOR_RETURN_IF_ERROR((run.is_annex ? annex_ : own_).Ensure(place));
    PinnedMemory& pins = run.is_annex ? annex_pins_ : own_pins_;
    TORPOR_RETURN_IF_ERROR(pins.Ensure(place));
    for (const memory::Extent& piece : pins.Split(place)) {
      const Bytes before = piece.begin - place.begin;
      const Bytes begin = run.extent.begin + before;
      parts.push_back({{begin, begin + piece.bytes()}, pins.at(piece.begin)});
    }
  }
  return parts;
}

absl::Status HostImage::Clear(memory::Extent extent) const {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<Part> homes, PartsOf(extent));
  for (const Part& home : homes) std::memset(home.data, 0, home.extent.bytes());
  return absl::OkStatus();
}

absl::StatusOr<bool> HostImage::PinNext(const Written& written) {
  if (!is_pinned_) return false;
  const std::optional<Bytes> pages = own_.PageBytes();
  // What is written has got pages. Looking at the states would take longer.
  if (pages && pages == pinned_at_) return false;
  const absl::StatusOr<std::vector<memory::Extent>> extents = written();
  absl::StatusOr<bool> has_pinned = extents.ok() ? PinNextOf(*extents) : extents.status();
  if (!has_pinned.ok()) {
    // Trying again is in vain until something changes.
    pinned_at_ = own_.PageBytes();
  } else if (*has_pinned) {
    pinned_at_.reset();
  } else {
    pinned_at_ = pages;
  }
  return has_pinned;
}

absl::StatusOr<bool> HostImage::PinNextOf(const std::vector<memory::Extent>& written) {
  // Of an image on the disk the states tell, and the files have nothing: pinning would fill them.
  const memory::ExtentSet own_pages = SetOf(own_.WithPages());
  const memory::ExtentSet annex_pages = SetOf(annex_.WithPages());
  for (const memory::Extent& extent : written) {
    for (const Run& run : RunsOf(extent)) {
      if ((run.is_annex ? annex_pages : own_pages).Within(run.place()).empty()) continue;
      TORPOR_RETURN_IF_ERROR((run.is_annex ? annex_ : own_).Ensure(run.place()));
      PinnedMemory& pins = run.is_annex ? annex_pins_ : own_pins_;
      TORPOR_ASSIGN_OR_RETURN(const bool has_pinned, pins.RegisterNext(run.place()));
      if (has_pinned) return true;
    }
  }
  return false;
}

absl::Status HostImage::ReleaseOwn(memory::Extent extent) {
  pinned_at_.reset();
  return own_pins_.UnregisterOverlapping(extent);
}

absl::Status HostImage::ReleaseAll(memory::Extent extent) {
  absl::Status status = own_pins_.UnregisterOverlapping(extent);
  status.Update(annex_pins_.UnregisterOverlapping(extent));
  pinned_at_ = own_.PageBytes();
  return status;
}

}  // namespace torpor::executor
