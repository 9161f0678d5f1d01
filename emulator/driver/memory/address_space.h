#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/units.h"
#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/memory/physical_memory.h"
#include "emulator/node/strictness.h"

namespace torpor::emulator {

// Device addresses are host addresses of this process in one window, unused by the loader, malloc
// and the stack.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kWindowBegin = 0x8'0000'0000;  // what ThreadSanitizer leaves over
inline constexpr std::uint64_t kWindowEnd = 0x7f'0000'0000;
inline constexpr std::uint64_t kFreeChoiceBegin = 0x60'0000'0000;
#else
inline constexpr std::uint64_t kWindowBegin = 0x1000'0000'0000;
inline constexpr std::uint64_t kWindowEnd = 0x5000'0000'0000;
// First address that the driver chooses when the caller gives no hint; addresses below are left for
// fixed reservations.
inline constexpr std::uint64_t kFreeChoiceBegin = 0x4000'0000'0000;
#endif
// Alignment and size unit of reservations and physical memory.
inline constexpr Bytes kGranularity = 2 * kMiB;

enum class RegionKind {
  kDevice,      // cuMemAlloc
  kManaged,     // cuMemAllocManaged
  kHost,        // cuMemHostAlloc
  kRegistered,  // cuMemHostRegister; may lie outside the window
  kMapped,      // cuMemMap
};

// A range of addresses that the driver knows.
struct Region {
  std::uint64_t begin = 0;
  Bytes size = 0;
  RegionKind kind = RegionKind::kDevice;
  CUdevice device = 0;
  CUcontext owner = nullptr;  // whose end is the region's; null: nobody's
  unsigned flags = 0;         // of cuMemHostAlloc or cuMemHostRegister
  bool readable = true;
  bool writable = true;
  std::uint64_t id = 0;  // unique in the process
  std::shared_ptr<PhysicalMemory> memory;
  std::map<CUdevice, unsigned long long> access;  // kMapped: what cuMemSetAccess granted

  std::uint64_t end() const { return begin + size; }
};

enum class Access { kRead, kWrite };

// One end of a copy. With `device` set, the address must be known to the driver; otherwise only an
// address in the window must be.
struct CopyEnd {
  std::uint64_t address = 0;
  bool device = false;
};

// The address ranges that the driver knows, and the memory behind them. Thread-safe.
class AddressSpace {
 public:
  // Allocates zeroed anonymous memory in the window, 2 MiB aligned and followed by an unmapped
  // page. Counts against no budget: see DriverDevice::AllocateMemory.
  DriverResult<std::uint64_t> Allocate(Bytes size, RegionKind kind, CUdevice device,
                                       CUcontext owner, unsigned flags);
  // Frees the allocation of `kind` that begins at `address`, and returns the region as it was.
  DriverResult<Region> Free(std::uint64_t address, RegionKind kind);

  // Makes host memory of the caller known to the driver. Fails if the range overlaps a known
  // region.
  CUresult Register(std::uint64_t address, Bytes size, CUcontext owner, unsigned flags);
  CUresult Unregister(std::uint64_t address);
  // Gives every page of the registered memory that begins at `address` its memory, as pinning does.
  // Returns CUDA_ERROR_INVALID_VALUE if a page cannot have any, as behind the end of a file.
  CUresult Populate(std::uint64_t address) const;
  // Whether the range lies partly in pinned or registered memory: in no single piece, and not
  // wholly outside.
  bool SpansRegistrations(std::uint64_t address, Bytes size) const;

  // Reserves addresses without memory. A `hint` at free addresses in the window is treated as
  // `hints` says; CUDA_ERROR_OUT_OF_MEMORY if it is refused.
  DriverResult<std::uint64_t> Reserve(Bytes size, Bytes alignment, std::uint64_t hint,
                                      AddressHints hints = AddressHints::kHonoured);
  CUresult FreeReservation(std::uint64_t address, Bytes size);
  // Maps `memory` into a reserved range, without access until SetAccess.
  CUresult Map(std::uint64_t address, Bytes size, std::shared_ptr<PhysicalMemory> memory);
  // Unmap and SetAccess work on whole mappings and may span several.
  CUresult Unmap(std::uint64_t address, Bytes size);
  CUresult SetAccess(std::uint64_t address, Bytes size, CUdevice device, unsigned long long flags);
  // Returns the number of mappings in the range.
  std::size_t CountMappings(std::uint64_t address, Bytes size) const;

  std::optional<Region> Find(std::uint64_t address) const;
  // Returns the regions of context `owner`.
  std::vector<Region> OwnedBy(CUcontext owner) const;
  // Returns the reservation that holds `address`, as (begin, size).
  std::optional<std::pair<std::uint64_t, Bytes>> FindReservation(std::uint64_t address) const;
  // Whether known regions that grant `access` cover the whole range.
  bool Covers(std::uint64_t address, Bytes size, Access access) const;
  // Whether a copy may touch `size` bytes at `end`. Of the host's own memory only null is excluded.
  bool IsLegal(CopyEnd end, Bytes size, Access access) const;

  // Calls `use` while the range stays accessible. Returns false without calling `use` if it is not.
  template <typename Use>
  bool WhileCovered(std::uint64_t address, Bytes size, Access access, const Use& use) const {
    std::shared_lock lock(mutex_);
    if (!CoversLocked(address, size, access)) return false;
    use();
    return true;
  }

  // Copies if both ends may be touched; otherwise touches nothing and returns
  // CUDA_ERROR_INVALID_VALUE.
  CUresult Copy(CopyEnd to, CopyEnd from, Bytes size) const;
  // Repeats the `unit` bytes at `value` over `count` units.
  CUresult Fill(std::uint64_t address, const void* value, Bytes unit, Bytes count) const;

 private:
  bool CoversLocked(std::uint64_t address, Bytes size, Access access) const;
  bool LegalLocked(CopyEnd end, Bytes size, Access access) const;
  bool OverlapsLocked(std::uint64_t address, Bytes size) const;
  std::uint64_t ReserveAnywhereLocked(Bytes size, Bytes alignment, int protection);
  // Whether [address, address + size) is made of whole mappings with no gap.
  bool IsWholeMappingsLocked(std::uint64_t address, Bytes size) const;

  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Region> regions_;
  std::map<std::uint64_t, Bytes> reservations_;
  std::uint64_t next_ = kFreeChoiceBegin;
  std::uint64_t next_id_ = 1;
};

}  // namespace torpor::emulator
