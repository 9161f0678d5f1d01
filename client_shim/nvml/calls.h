#pragma once

#include "client_shim/nvml/devices.h"
#include "client_shim/nvml/entry.h"
#include "client_shim/nvml/system.h"
#include "client_shim/nvml/usage.h"

// The functions that the expressions of proto/cuda_api/nvml.py call.
