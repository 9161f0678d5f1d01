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

HostImage::HostImage(const Device& device, Files files, memory::BlockStates& states, bool is_pinned)
    : files_(std::move(files)),
      states_(states),
      is_pinned_(is_pinned),
      own_pins_(device, files_.own.data(), files_.own.bytes(), kPinUnit),
      annex_pins_(device, files_.annex.data(), files_.annex.bytes(), kPinUnit) {}

absl::Status HostImage::Map(memory::Extent extent) { return files_.own.Ensure(extent); }

absl::StatusOr<const SharedMapping*> HostImage::MappingOf(File file) const {
  if (file == File::kOwn) return &files_.own;
  if (file == File::kAnnex) return &files_.annex;
  if (files_.tenant) return &files_.tenant->mapping();
  return absl::DataLossError("a block lies in the tenant's file, which torpord does not offer");
}

PinnedMemory& HostImage::PinsOf(File file) {
  if (file == File::kOwn) return own_pins_;
  return file == File::kAnnex ? annex_pins_ : files_.tenant->pins();
}

std::vector<HostImage::Run> HostImage::RunsOf(memory::Extent extent) const {
  const Bytes unit = states_.block_bytes();
  std::vector<Run> runs;
  while (extent.begin < extent.end) {
    const Bytes block = extent.begin / unit;
    const memory::BlockHome home = states_.home(block);
    const Bytes place = memory::PlaceOfHome(block, home) * unit;
    const Run next{{extent.begin, std::min(extent.end, (block + 1) * unit)},
                   place + extent.begin % unit,
                   memory::IsTenantHome(home)  ? File::kTenant
                   : memory::IsAnnexHome(home) ? File::kAnnex
                                               : File::kOwn};
    const bool goes_on = !runs.empty() && runs.back().file == next.file &&
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

absl::Status HostImage::MakeWritable(memory::Extent extent) const {
  const Bytes unit = states_.block_bytes();
  for (Bytes block = extent.begin / unit; block * unit < extent.end; ++block) {
    if (!memory::IsTenantHome(states_.home(block))) continue;
    const memory::Extent own{block * unit, (block + 1) * unit};
    TORPOR_RETURN_IF_ERROR(files_.own.Ensure(own));
    TORPOR_ASSIGN_OR_RETURN(const std::vector<Part> shared, PartsOf(own));
    for (const Part& part : shared) {
      std::memcpy(files_.own.data() + part.extent.begin, part.data, part.extent.bytes());
    }
    states_.Move(block, memory::kOwnPlace);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostImage::Part>> HostImage::PartsOf(memory::Extent extent) const {
  std::vector<Part> parts;
  for (const Run& run : RunsOf(extent)) {
    TORPOR_ASSIGN_OR_RETURN(const SharedMapping* const mapping, MappingOf(run.file));
    TORPOR_RETURN_IF_ERROR(mapping->Ensure(run.place()));
    parts.push_back({run.extent, mapping->data() + run.begin});
  }
  return parts;
}

absl::StatusOr<std::vector<HostImage::Part>> HostImage::PinnedPartsOf(memory::Extent extent) {
  if (!is_pinned_) return PartsOf(extent);
  std::vector<Part> parts;
  for (const Run& run : RunsOf(extent)) {
    const memory::Extent place = run.place();
    TORPOR_ASSIGN_OR_RETURN(const SharedMapping* const mapping, MappingOf(run.file));
    TORPOR_RETURN_IF_ERROR(mapping->Ensure(place));
    PinnedMemory& pins = PinsOf(run.file);
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
  TORPOR_RETURN_IF_ERROR(MakeWritable(extent));
  TORPOR_ASSIGN_OR_RETURN(const std::vector<Part> homes, PartsOf(extent));
  for (const Part& home : homes) std::memset(home.data, 0, home.extent.bytes());
  return absl::OkStatus();
}

absl::StatusOr<bool> HostImage::PinNext(const Written& written) {
  if (!is_pinned_) return false;
  const std::optional<Bytes> pages = files_.own.PageBytes();
  // What is written has got pages. Looking at the states would take longer.
  if (pages && pages == pinned_at_) return false;
  const absl::StatusOr<std::vector<memory::Extent>> extents = written();
  absl::StatusOr<bool> has_pinned = extents.ok() ? PinNextOf(*extents) : extents.status();
  if (!has_pinned.ok()) {
    // Trying again is in vain until something changes.
    pinned_at_ = files_.own.PageBytes();
  } else if (*has_pinned) {
    pinned_at_.reset();
  } else {
    pinned_at_ = pages;
  }
  return has_pinned;
}

absl::StatusOr<bool> HostImage::PinNextOf(const std::vector<memory::Extent>& written) {
  // Of an image on the disk the states tell, and its files have nothing: pinning would fill them.
  // Homes in the tenant's file always have pages.
  const memory::ExtentSet own_pages = SetOf(files_.own.WithPages());
  const memory::ExtentSet annex_pages = SetOf(files_.annex.WithPages());
  const auto has_pages = [&](const Run& run) {
    if (run.file == File::kTenant) return true;
    return !(run.file == File::kOwn ? own_pages : annex_pages).Within(run.place()).empty();
  };
  for (const memory::Extent& extent : written) {
    for (const Run& run : RunsOf(extent)) {
      if (!has_pages(run)) continue;
      TORPOR_ASSIGN_OR_RETURN(const SharedMapping* const mapping, MappingOf(run.file));
      TORPOR_RETURN_IF_ERROR(mapping->Ensure(run.place()));
      TORPOR_ASSIGN_OR_RETURN(const bool has_pinned, PinsOf(run.file).RegisterNext(run.place()));
      if (has_pinned) return true;
    }
  }
  return false;
}

absl::Status HostImage::Release(memory::Extent extent, HostPlaces places) {
  if (places == HostPlaces::kTenantFile) {
    return files_.tenant ? files_.tenant->pins().UnregisterOverlapping(extent) : absl::OkStatus();
  }
  absl::Status status;
  if (places != HostPlaces::kAnnex) status.Update(own_pins_.UnregisterOverlapping(extent));
  if (places != HostPlaces::kOwn) status.Update(annex_pins_.UnregisterOverlapping(extent));
  pinned_at_ = places == HostPlaces::kAll ? files_.own.PageBytes() : std::nullopt;
  return status;
}

}  // namespace torpor::executor
