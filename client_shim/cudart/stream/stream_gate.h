#pragma once

namespace torpor::shim {

// From now on other libraries' work on streams passes libcudart's StreamGate: there are captures or
// host functions that it must heed.
void OpenStreamGate();

}  // namespace torpor::shim
