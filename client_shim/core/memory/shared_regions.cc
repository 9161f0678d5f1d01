#include "client_shim/core/memory/shared_regions.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace torpor::shim {
namespace {

Failure<int> AtAddress(const char* what, std::uint64_t address, std::uint64_t bytes) {
  const int code = errno;
  char text[160];
  std::snprintf(text, sizeof text, "cannot place %s of %llu bytes at 0x%llx: %s", what,
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address),
                std::strerror(code));
  return {code, text};
}

// Maps memory at exactly `address`, which must be free. Kernels before 4.17 treat `address` as a
// mere hint.
void* MapFixed(std::uint64_t address, std::uint64_t bytes, int protection, int flags, int fd) {
  void* wanted = reinterpret_cast<void*>(address);
  void* got = mmap(wanted, bytes, protection, flags | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
  if (got == MAP_FAILED) return nullptr;
  if (got != wanted) {
    munmap(got, bytes);
    errno = EEXIST;
    return nullptr;
  }
  return got;
}

}  // namespace

Result<AddressReservation, int> AddressReservation::Make(std::uint64_t base, std::uint64_t bytes) {
  AddressReservation reservation;
  reservation.begin_ = MapFixed(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (!reservation.begin_) return AtAddress("device memory", base, bytes);
  reservation.bytes_ = bytes;
  return reservation;
}

AddressReservation::AddressReservation(AddressReservation&& other) noexcept {
  *this = std::move(other);
}

AddressReservation& AddressReservation::operator=(AddressReservation&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

AddressReservation::~AddressReservation() {
  if (begin_) munmap(begin_, bytes_);
}

Result<SharedRegions, int> SharedRegions::Map(const wire::HelloReply& session, Deadline deadline) {
  SharedRegions regions;
  if (session.window_bytes <= wire::kCompletionPageBytes || session.device_bytes == 0)
    return Failure<int>{EPROTO, "the daemon named no window or no device addresses"};

  // Addresses are the same for all sessions of a process; the primary session keeps them.
  const bool is_primary = session.host_bytes > 0;
  if (is_primary) {
    Result<AddressReservation, int> device =
        AddressReservation::Make(session.device_base, session.device_bytes);
    if (!device) return device.failure();
    regions.device_ = std::move(device).value();
  }

  Result<UniqueFd, int> window =
      FetchDescriptor(session, wire::SharedMemory::kWindow, session.window_bytes, deadline);
  if (!window) return window.failure();
  void* mapped =
      mmap(nullptr, session.window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, window->get(), 0);
  if (mapped == MAP_FAILED) return AtAddress("the window", 0, session.window_bytes);
  regions.window_ = {mapped, session.window_bytes};

  if (!is_primary) return regions;
  Result<UniqueFd, int> arena =
      FetchDescriptor(session, wire::SharedMemory::kHostArena, session.host_bytes, deadline);
  if (!arena) return arena.failure();
  void* host = MapFixed(session.host_base, session.host_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        arena->get());
  if (!host) return AtAddress("host memory", session.host_base, session.host_bytes);
  regions.arena_ = {host, session.host_bytes};
  return regions;
}

SharedRegions::SharedRegions(SharedRegions&& other) noexcept { Swap(other); }

SharedRegions& SharedRegions::operator=(SharedRegions&& other) noexcept {
  Swap(other);
  return *this;
}

void SharedRegions::Swap(SharedRegions& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(window_, other.window_);
  std::swap(arena_, other.arena_);
}

SharedRegions::~SharedRegions() {
  for (const Mapping& mapping : {window_, arena_})
    if (mapping.begin) munmap(mapping.begin, mapping.bytes);
}

}  // namespace torpor::shim
