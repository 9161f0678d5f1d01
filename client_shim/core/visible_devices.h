#pragma once

#include <string_view>
#include <vector>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// Returns the indices of those of `devices` that CUDA_VISIBLE_DEVICES=`text` makes visible, in the
// order of `text`. `text` is a list of indices or, if the first entry begins with GPU-, a list of
// UUIDs or unambiguous prefixes of UUIDs. The list ends before the first entry that names no
// device. A list that names a device twice makes no device visible.
std::vector<int> VisibleDevices(std::string_view text,
                                const std::vector<wire::DeviceDescription>& devices);

}  // namespace torpor::shim
