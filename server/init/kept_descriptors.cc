#include "server/init/kept_descriptors.h"

#include <fmt/format.h>

#include <utility>

#include "server/daemon/descriptor_store.h"

namespace torpor::init {

absl::Status KeptDescriptors::Keep(const std::string& name, UniqueFd descriptor) {
  if (!server::IsDescriptorName(name)) {
    return absl::InvalidArgumentError(
        "a descriptor needs a name, FDNAME=, of 1 to 255 printable ASCII characters without a "
        "colon");
  }
  if (by_name_.size() >= capacity_ && !by_name_.contains(name)) {
    return absl::ResourceExhaustedError(
        fmt::format("{} is not kept: no more than {} descriptors are", name, capacity_));
  }
  by_name_.insert_or_assign(name, std::move(descriptor));
  return absl::OkStatus();
}

}  // namespace torpor::init
