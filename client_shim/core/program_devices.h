#pragma once

#include <optional>
#include <vector>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The program's devices, and their indices among the function's devices, of which
// CUDA_VISIBLE_DEVICES may hide and reorder some. Not thread-safe: fill in before sharing.
class ProgramDevices {
 public:
  // The program sees the function's devices `indices`, in this order. Requires at least one.
  void Choose(std::vector<int> indices, const std::vector<wire::DeviceDescription>& of_function);
  // The program sees all devices of the function, unless Choose was called before.
  void ShowAll(const std::vector<wire::DeviceDescription>& of_function);

  const std::vector<wire::DeviceDescription>& descriptions() const { return descriptions_; }
  bool Has(int device) const;
  // The index among the function's devices; requires Has(device), or device 0 at any time.
  int IndexOf(int device) const;
  // The program's number of the function's device `index`; -1 if hidden.
  int DeviceOf(int index) const;

 private:
  std::optional<std::vector<int>> visible_;  // nullopt: all, in the function's order
  std::vector<wire::DeviceDescription> descriptions_;
};

}  // namespace torpor::shim
