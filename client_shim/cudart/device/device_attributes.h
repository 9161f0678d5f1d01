#pragma once

#include <cuda_runtime_api.h>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The value of an attribute for programs: the GPU's own, except for abilities that Torpor adds or
// lacks on every GPU. 0 for attributes unknown to the GPU's driver.
int AttributeOf(const wire::DeviceDescription& device, cudaDeviceAttr attribute);

}  // namespace torpor::shim
