#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// GPU addresses that the driver keeps free for mappings. Ends with the object, when nothing may be
// mapped there any more.
class AddressReservation {
 public:
  // Reserves exactly [base, base + bytes); the driver takes a wish for addresses as a hint. Errors:
  // AlreadyExists if the driver gives other addresses, else the driver's own. `device` must outlive
  // the object.
  static absl::StatusOr<std::unique_ptr<AddressReservation>> Make(const Device& device,
                                                                  std::uint64_t base, Bytes bytes);
  ~AddressReservation();
  AddressReservation(const AddressReservation&) = delete;
  AddressReservation& operator=(const AddressReservation&) = delete;

 private:
  AddressReservation(const Device& device, std::uint64_t base, Bytes bytes)
      : device_(device), base_(base), bytes_(bytes) {}

  const Device& device_;
  const std::uint64_t base_;
  const Bytes bytes_;
};

}  // namespace torpor::executor
