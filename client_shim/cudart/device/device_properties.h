#pragma once

#include <cuda_runtime_api.h>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// Fills in cudaDeviceProp, in the layout of the build's toolkit, from the device's attributes.
cudaDeviceProp DeviceProperties(const wire::DeviceDescription& device);

}  // namespace torpor::shim
