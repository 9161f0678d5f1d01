#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/node_addresses.h"

namespace torpor::executor {

// What the driver says to the addresses that a node wants.
struct AddressProbe {
  std::optional<std::size_t> found;  // index of the first candidate that the driver reserves
  std::string why;                   // none found: what the driver said to the last try
};

// Tries the candidates in order, with a context on each of `gpus`, until the driver reserves one.
// Fails if there is no driver, or no context.
absl::StatusOr<AddressProbe> ProbeAddresses(const std::string& cuda_library_dir,
                                            const std::vector<int>& gpus,
                                            const std::vector<server::NodeAddresses>& candidates);

}  // namespace torpor::executor
