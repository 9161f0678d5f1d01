#pragma once

namespace torpor::shim {

// Forgets every peer enabled for `device` (cudaDeviceReset). Access itself is always there.
void DisablePeerAccess(int device);

}  // namespace torpor::shim
