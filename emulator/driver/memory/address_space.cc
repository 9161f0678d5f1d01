#include "emulator/driver/memory/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

namespace torpor::emulator {
namespace {

constexpr Bytes kPage = 4 * kKiB;
// Copies hold the lock a piece at a time, so that an allocation does not wait for a long one.
constexpr Bytes kCopyPiece = 4 * kMiB;
// Below this a huge page wastes more than its faults cost.
constexpr Bytes kHugePageFrom = 4 * kMiB;

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// Whether the range lies in the window; safe against overflow.
bool InWindow(std::uint64_t address, Bytes size) {
  return address >= kWindowBegin && size <= kWindowEnd - kWindowBegin &&
         address <= kWindowEnd - size;
}

// Maps anonymous memory exactly at `address`; `fixed` is MAP_FIXED or MAP_FIXED_NOREPLACE. Returns
// false, with nothing mapped, if the kernel chose another place.
bool MapAnonymous(std::uint64_t address, Bytes size, int protection, int fixed) {
  void* result = mmap(Pointer(address), size, protection,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  if (result == MAP_FAILED) return false;
  if (result == Pointer(address)) return true;
  munmap(result, size);  // a kernel before 4.17 takes MAP_FIXED_NOREPLACE for a hint
  return false;
}

// Whether every page of the range is mapped by any means.
bool IsMapped(std::uint64_t address, Bytes size) {
  std::array<unsigned char, 4096> residency;
  const std::uint64_t end = RoundUp(address + size, kPage);
  for (std::uint64_t at = RoundDown(address, kPage); at < end; at += residency.size() * kPage) {
    const Bytes piece = std::min<Bytes>(end - at, residency.size() * kPage);
    if (mincore(Pointer(at), piece, residency.data()) != 0) return false;
  }
  return true;
}

}  // namespace

// Whether any region overlaps the range.
bool AddressSpace::OverlapsLocked(std::uint64_t address, Bytes size) const {
  const auto next = regions_.lower_bound(address);
  if (next != regions_.end() && next->first < address + size) return true;
  return next != regions_.begin() && std::prev(next)->second.end() > address;
}

// Maps memory at the next free address of the driver's choice, searching the window at most twice.
// Returns 0 if there is no room.
std::uint64_t AddressSpace::ReserveAnywhereLocked(Bytes size, Bytes alignment, int protection) {
  const Bytes step = RoundUp(size + kPage, kGranularity);
  bool wrapped = false;
  while (true) {
    const std::uint64_t address = RoundUp(next_, alignment);
    if (address + step > kWindowEnd) {
      if (wrapped) return 0;
      wrapped = true;
      next_ = kFreeChoiceBegin;
      continue;
    }
    next_ = address + step;
    if (MapAnonymous(address, size, protection, MAP_FIXED_NOREPLACE)) return address;
    if (errno == ENOMEM) return 0;
    next_ = address + kGranularity;
  }
}

DriverResult<std::uint64_t> AddressSpace::Allocate(Bytes size, RegionKind kind, CUdevice device,
                                                   CUcontext owner, unsigned flags) {
  std::unique_lock lock(mutex_);
  const Bytes mapped = RoundUp(size, kPage);
  const std::uint64_t address = ReserveAnywhereLocked(mapped, kGranularity, PROT_READ | PROT_WRITE);
  if (address == 0) return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "no address space left"};
  if (mapped >= kHugePageFrom) madvise(Pointer(address), mapped, MADV_HUGEPAGE);
  regions_[address] = Region{.begin = address,
                             .size = size,
                             .kind = kind,
                             .device = device,
                             .owner = owner,
                             .flags = flags,
                             .id = next_id_++,
                             .memory = nullptr,
                             .access = {}};
  return address;
}

// The addresses are unmapped at once, so that stray accesses fault.
DriverResult<Region> AddressSpace::Free(std::uint64_t address, RegionKind kind) {
  std::unique_lock lock(mutex_);
  const auto found = regions_.find(address);
  if (found == regions_.end() || found->second.kind != kind) {
    return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, "no allocation begins at this address"};
  }
  Region region = std::move(found->second);
  regions_.erase(found);
  munmap(Pointer(address), RoundUp(region.size, kPage));
  return region;
}

CUresult AddressSpace::Register(std::uint64_t address, Bytes size, CUcontext owner,
                                unsigned flags) {
  if (address == 0 || size == 0 || size > UINT64_MAX - address || !IsMapped(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::unique_lock lock(mutex_);
  if (OverlapsLocked(address, size)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  regions_[address] = Region{.begin = address,
                             .size = size,
                             .kind = RegionKind::kRegistered,
                             .owner = owner,
                             .flags = flags,
                             .writable = (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0,
                             .id = next_id_++,
                             .memory = nullptr,
                             .access = {}};
  return CUDA_SUCCESS;
}

CUresult AddressSpace::Unregister(std::uint64_t address) {
  std::unique_lock lock(mutex_);
  const auto found = regions_.find(address);
  if (found == regions_.end() || found->second.kind != RegionKind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  regions_.erase(found);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::Populate(std::uint64_t address) const {
  const auto region = Find(address);
  if (!region) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  const std::uint64_t begin = RoundDown(region->begin, kPage);
  const Bytes size = RoundUp(region->end(), kPage) - begin;
  const int advice = region->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  if (madvise(Pointer(begin), size, advice) == 0) return CUDA_SUCCESS;
  // A kernel before 5.14 does not know the advice: pages then come as they are touched.
  return errno == EINVAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool AddressSpace::SpansRegistrations(std::uint64_t address, Bytes size) const {
  const auto is_pinned = [](const Region& region) {
    return region.kind == RegionKind::kHost || region.kind == RegionKind::kRegistered;
  };
  std::shared_lock lock(mutex_);
  auto region = regions_.upper_bound(address);
  if (region != regions_.begin() && std::prev(region)->second.end() > address) --region;
  if (region == regions_.end() || region->first >= address + size) return false;
  if (!is_pinned(region->second)) return false;
  return region->first > address || region->second.end() < address + size;
}

DriverResult<std::uint64_t> AddressSpace::Reserve(Bytes size, Bytes alignment, std::uint64_t hint,
                                                  AddressHints hints) {
  std::unique_lock lock(mutex_);
  if (hint != 0 && hints == AddressHints::kRefused) {
    return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "the topology refuses address hints"};
  }
  if (hint != 0 && hints == AddressHints::kHonoured && hint % kGranularity == 0 &&
      InWindow(hint, size) && MapAnonymous(hint, size, PROT_NONE, MAP_FIXED_NOREPLACE)) {
    reservations_[hint] = size;
    return hint;
  }
  const std::uint64_t address =
      ReserveAnywhereLocked(size, std::max(alignment, kGranularity), PROT_NONE);
  if (address == 0) return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "no address space left"};
  reservations_[address] = size;
  return address;
}

// Fails while anything is mapped in the reservation.
CUresult AddressSpace::FreeReservation(std::uint64_t address, Bytes size) {
  std::unique_lock lock(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != size || OverlapsLocked(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservations_.erase(found);
  munmap(Pointer(address), size);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::Map(std::uint64_t address, Bytes size,
                           std::shared_ptr<PhysicalMemory> memory) {
  // The driver maps a handle whole and at offset zero only.
  if (size == 0 || size != memory->size() || address % kGranularity != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::unique_lock lock(mutex_);
  const auto above = reservations_.upper_bound(address);
  if (above == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [begin, reserved] = *std::prev(above);
  if (address - begin > reserved || size > reserved - (address - begin) ||
      OverlapsLocked(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUdevice device = memory->properties().location.id;
  regions_[address] = Region{.begin = address,
                             .size = size,
                             .kind = RegionKind::kMapped,
                             .device = device,
                             .readable = false,
                             .writable = false,
                             .id = next_id_++,
                             .memory = std::move(memory),
                             .access = {}};
  return CUDA_SUCCESS;
}

// Walks over adjacent mappings.
bool AddressSpace::IsWholeMappingsLocked(std::uint64_t address, Bytes size) const {
  std::uint64_t at = address;
  for (auto region = regions_.find(address);
       region != regions_.end() && region->first == at && at - address < size; ++region) {
    if (region->second.kind != RegionKind::kMapped) return false;
    at = region->second.end();
  }
  return size != 0 && at - address == size;
}

// Replaces the mappings by inaccessible memory: the reservation stays.
CUresult AddressSpace::Unmap(std::uint64_t address, Bytes size) {
  std::unique_lock lock(mutex_);
  if (!IsWholeMappingsLocked(address, size)) return CUDA_ERROR_INVALID_VALUE;
  if (!MapAnonymous(address, size, PROT_NONE, MAP_FIXED)) return CUDA_ERROR_OUT_OF_MEMORY;
  regions_.erase(regions_.find(address), regions_.lower_bound(address + size));
  return CUDA_SUCCESS;
}

CUresult AddressSpace::SetAccess(std::uint64_t address, Bytes size, CUdevice device,
                                 unsigned long long flags) {
  std::unique_lock lock(mutex_);
  if (!IsWholeMappingsLocked(address, size)) return CUDA_ERROR_INVALID_VALUE;
  const auto end = regions_.lower_bound(address + size);
  for (auto entry = regions_.find(address); entry != end; ++entry) {
    Region& region = entry->second;
    region.access[device] = flags;
    // The host has one page table for all devices, so each device may do whatever any may do.
    unsigned long long granted = 0;
    for (const auto& [other, other_flags] : region.access) granted |= other_flags;
    const bool readable = (granted & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0;
    const bool writable = granted == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (readable == region.readable && writable == region.writable) continue;
    const int protection = (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0);
    if (mmap(Pointer(region.begin), region.size, protection, MAP_SHARED | MAP_FIXED,
             region.memory->fd(), 0) == MAP_FAILED) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region.readable = readable;
    region.writable = writable;
    if (writable) region.memory->FillNew(Pointer(region.begin));
  }
  return CUDA_SUCCESS;
}

std::size_t AddressSpace::CountMappings(std::uint64_t address, Bytes size) const {
  std::shared_lock lock(mutex_);
  return static_cast<std::size_t>(
      std::distance(regions_.lower_bound(address), regions_.lower_bound(address + size)));
}

std::optional<Region> AddressSpace::Find(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  const auto above = regions_.upper_bound(address);
  if (above == regions_.begin()) return std::nullopt;
  const Region& region = std::prev(above)->second;
  if (address >= region.end()) return std::nullopt;
  return region;
}

std::vector<Region> AddressSpace::OwnedBy(CUcontext owner) const {
  std::vector<Region> owned;
  std::shared_lock lock(mutex_);
  for (const auto& [address, region] : regions_) {
    if (region.owner == owner) owned.push_back(region);
  }
  return owned;
}

std::optional<std::pair<std::uint64_t, Bytes>> AddressSpace::FindReservation(
    std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  const auto above = reservations_.upper_bound(address);
  if (above == reservations_.begin()) return std::nullopt;
  const auto& [begin, size] = *std::prev(above);
  if (address - begin >= size) return std::nullopt;
  return std::pair(begin, size);
}

// Walks over adjacent regions; `access` must be granted by each.
bool AddressSpace::CoversLocked(std::uint64_t address, Bytes size, Access access) const {
  if (size > UINT64_MAX - address) return false;
  const std::uint64_t end = address + size;
  auto region = regions_.upper_bound(address);
  if (region == regions_.begin()) return false;
  --region;
  while (true) {
    if (address < region->first || address >= region->second.end()) return false;
    if (!(access == Access::kRead ? region->second.readable : region->second.writable))
      return false;
    address = region->second.end();
    if (address >= end) return true;
    if (++region == regions_.end()) return false;
  }
}

bool AddressSpace::Covers(std::uint64_t address, Bytes size, Access access) const {
  std::shared_lock lock(mutex_);
  return CoversLocked(address, size, access);
}

bool AddressSpace::IsLegal(CopyEnd end, Bytes size, Access access) const {
  std::shared_lock lock(mutex_);
  return LegalLocked(end, size, access);
}

bool AddressSpace::LegalLocked(CopyEnd end, Bytes size, Access access) const {
  const bool outside = end.address >= kWindowEnd ||
                       (end.address < kWindowBegin && size <= kWindowBegin - end.address);
  if (!end.device && outside) return end.address != 0;
  return CoversLocked(end.address, size, access);
}

// Checks both ends before the first byte and again before each piece: memory that is unmapped
// during the copy gives CUDA_ERROR_ILLEGAL_ADDRESS.
CUresult AddressSpace::Copy(CopyEnd to, CopyEnd from, Bytes size) const {
  {
    std::shared_lock lock(mutex_);
    if (!LegalLocked(to, size, Access::kWrite) || !LegalLocked(from, size, Access::kRead)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (size <= kCopyPiece) {
      std::memmove(Pointer(to.address), Pointer(from.address), size);
      return CUDA_SUCCESS;
    }
  }
  // Pieces from the end when the target overlaps the source from above, as memmove does.
  const bool backwards = to.address > from.address && to.address - from.address < size;
  for (Bytes done = 0; done < size;) {
    const Bytes piece = std::min(size - done, kCopyPiece);
    const Bytes offset = backwards ? size - done - piece : done;
    const CopyEnd piece_to{to.address + offset, to.device};
    const CopyEnd piece_from{from.address + offset, from.device};
    std::shared_lock lock(mutex_);
    if (!LegalLocked(piece_to, piece, Access::kWrite) ||
        !LegalLocked(piece_from, piece, Access::kRead)) {
      return CUDA_ERROR_ILLEGAL_ADDRESS;  // unmapped under a running copy
    }
    std::memmove(Pointer(piece_to.address), Pointer(piece_from.address), piece);
    done += piece;
  }
  return CUDA_SUCCESS;
}

CUresult AddressSpace::Fill(std::uint64_t address, const void* value, Bytes unit,
                            Bytes count) const {
  if (count > UINT64_MAX / unit) return CUDA_ERROR_INVALID_VALUE;
  std::shared_lock lock(mutex_);
  if (!CoversLocked(address, unit * count, Access::kWrite)) return CUDA_ERROR_INVALID_VALUE;
  auto* target = static_cast<unsigned char*>(Pointer(address));
  const auto* pattern = static_cast<const unsigned char*>(value);
  const bool uniform = std::all_of(pattern, pattern + unit,
                                   [pattern](unsigned char byte) { return byte == *pattern; });
  if (uniform) {
    std::memset(target, *pattern, unit * count);
    return CUDA_SUCCESS;
  }
  for (Bytes i = 0; i < count; ++i) std::memcpy(target + i * unit, pattern, unit);
  return CUDA_SUCCESS;
}

}  // namespace torpor::emulator
