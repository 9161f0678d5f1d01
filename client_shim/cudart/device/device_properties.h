#pragma once

#include <cuda_runtime_api.h>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// cudaDeviceProp, of the toolkit that we are built with, from the device's attributes.
cudaDeviceProp DeviceProperties(const wire::DeviceDescription& device);

}  // namespace torpor::shim
