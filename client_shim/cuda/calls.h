#pragma once

// The functions that the expressions of proto/cuda_api/cuda.py call.
#include <bit>

#include "client_shim/cuda/arrays.h"
#include "client_shim/cuda/contexts.h"
#include "client_shim/cuda/copies.h"
#include "client_shim/cuda/devices.h"
#include "client_shim/cuda/entry.h"
#include "client_shim/cuda/functions.h"
#include "client_shim/cuda/initialization.h"
#include "client_shim/cuda/launches.h"
#include "client_shim/cuda/links.h"
#include "client_shim/cuda/memory.h"
#include "client_shim/cuda/modules.h"
#include "client_shim/cuda/proc_address.h"
#include "client_shim/cuda/texture_descriptors.h"
#include "client_shim/cuda/texture_objects.h"
#include "client_shim/cuda/virtual_memory.h"
