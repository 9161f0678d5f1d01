#pragma once

#include <string_view>
#include <vector>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// What CUDA_VISIBLE_DEVICES, set to `text`, leaves of `devices`: their indices, in its order. It is
// a list of indices or, if it begins with GPU-, of UUIDs of which each may be cut short where one
// device alone begins so. The list ends before the first entry that names no device; one that names
// a device twice leaves none.
std::vector<int> VisibleDevices(std::string_view text,
                                const std::vector<wire::DeviceDescription>& devices);

}  // namespace torpor::shim
