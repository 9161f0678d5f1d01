#include "server/executor/gpu/address_reservation.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace torpor::executor {

absl::StatusOr<std::unique_ptr<AddressReservation>> AddressReservation::Make(const Device& device,
                                                                             std::uint64_t base,
                                                                             Bytes bytes) {
  CUdeviceptr reserved = 0;
  TORPOR_RETURN_IF_ERROR(device.Status(
      device.driver().MemAddressReserve(&reserved, bytes, 0, base, 0), "cuMemAddressReserve"));
  if (reserved == base) {
    return std::unique_ptr<AddressReservation>(new AddressReservation(device, base, bytes));
  }
  device.driver().MemAddressFree(reserved, bytes);
  return absl::AlreadyExistsError(
      absl::StrFormat("the driver reserved %#x instead of %#x", reserved, base));
}

AddressReservation::~AddressReservation() { device_.driver().MemAddressFree(base_, bytes_); }

}  // namespace torpor::executor
