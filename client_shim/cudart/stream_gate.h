#pragma once

namespace torpor::shim {

// From now on other libraries' work on streams that capture comes here (CaptureSink).
void CaptureOtherLibraries();

}  // namespace torpor::shim
