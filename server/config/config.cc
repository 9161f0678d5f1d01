#include "server/config/config.h"

namespace torpor::server {

NodeAddresses AddressesOf(const Config& config) {
  if (config.addresses.found.device_bytes > 0) return config.addresses.found;
  const auto candidates = AddressCandidates(config.addresses.base, config.addresses.space);
  return candidates.empty() ? NodeAddresses() : candidates.front();
}

}  // namespace torpor::server
