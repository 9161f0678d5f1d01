#pragma once

namespace torpor::shim {

// The device has no peer enabled any more (cudaDeviceReset).
void DisablePeerAccess(int device);

}  // namespace torpor::shim
