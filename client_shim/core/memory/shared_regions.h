#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "client_shim/core/transport/unix_socket.h"
#include "proto/wire/control_messages.h"
#include "proto/wire/session_window.h"

namespace torpor::shim {

// Reserves addresses of device memory, so that no other memory of this process is placed there. The
// destructor ends the reservation.
class AddressReservation {
 public:
  // The failure's code is an errno.
  static Result<AddressReservation, int> Make(std::uint64_t base, std::uint64_t bytes);

  AddressReservation() = default;
  AddressReservation(AddressReservation&& other) noexcept;
  AddressReservation& operator=(AddressReservation&& other) noexcept;
  ~AddressReservation();

 private:
  void* begin_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// The session's addresses in this process: the window and, for the primary session, the reserved
// addresses of all sessions' device memory and the host arena. The destructor unmaps all.
class SharedRegions {
 public:
  // Maps the addresses that the daemon named. The failure's code is an errno.
  static Result<SharedRegions, int> Map(const wire::HelloReply& session, Deadline deadline);

  SharedRegions() = default;
  SharedRegions(SharedRegions&& other) noexcept;
  SharedRegions& operator=(SharedRegions&& other) noexcept;
  ~SharedRegions();

  wire::CompletionPage* page() const { return static_cast<wire::CompletionPage*>(window_.begin); }
  std::uint8_t* window() const { return static_cast<std::uint8_t*>(window_.begin); }

 private:
  struct Mapping {
    void* begin = nullptr;
    std::uint64_t bytes = 0;
  };
  void Swap(SharedRegions& other) noexcept;

  AddressReservation device_;
  Mapping window_;
  Mapping arena_;
};

}  // namespace torpor::shim
