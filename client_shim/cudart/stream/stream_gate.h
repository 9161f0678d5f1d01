#pragma once

namespace torpor::shim {

// Puts libcudart's StreamGate before the work that other libraries send to streams. Called with the
// first capture or host function; the gate stays until the process ends.
void OpenStreamGate();

}  // namespace torpor::shim
