#include "client_shim/core/program_devices.h"

#include <algorithm>
#include <utility>

namespace torpor::shim {

void ProgramDevices::Choose(std::vector<int> indices,
                            const std::vector<wire::DeviceDescription>& of_function) {
  descriptions_.clear();
  for (const int index : indices)
    descriptions_.push_back(of_function[static_cast<std::size_t>(index)]);
  visible_ = std::move(indices);
}

void ProgramDevices::ShowAll(const std::vector<wire::DeviceDescription>& of_function) {
  if (!visible_) descriptions_ = of_function;
}

bool ProgramDevices::Has(int device) const {
  return device >= 0 && static_cast<std::size_t>(device) < descriptions_.size();
}

int ProgramDevices::IndexOf(int device) const {
  return visible_ ? (*visible_)[static_cast<std::size_t>(device)] : device;
}

int ProgramDevices::DeviceOf(int index) const {
  if (!visible_) return index;
  const auto found = std::find(visible_->begin(), visible_->end(), index);
  return found == visible_->end() ? -1 : static_cast<int>(found - visible_->begin());
}

}  // namespace torpor::shim
