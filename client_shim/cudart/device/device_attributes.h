#pragma once

#include <cuda_runtime_api.h>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// What programs are told of an attribute: the GPU's own value, but for what Torpor itself does or
// leaves out whatever the GPU can. 0 for attributes that the GPU's driver does not know.
int AttributeOf(const wire::DeviceDescription& device, cudaDeviceAttr attribute);

}  // namespace torpor::shim
