#pragma once

namespace torpor::shim {

class ClientCore;

// The core of the calling thread's current device; null before it has chosen one.
ClientCore* CurrentCore();
void SetCurrentCore(ClientCore* core);

}  // namespace torpor::shim
