#pragma once

namespace torpor::shim {

class ClientCore;

// The core of the calling thread's current device; null before the thread has chosen a device.
ClientCore* CurrentCore();
void SetCurrentCore(ClientCore* core);

}  // namespace torpor::shim
