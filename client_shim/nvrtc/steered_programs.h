#pragma once

#include <nvrtc.h>

namespace torpor::shim {

// Whether the session's GPU is emulated and runs PTX only. Opens the session.
bool NeedsPtx();

// The programs that asked for machine code but were compiled to PTX. Thread-safe.
void RememberSteered(nvrtcProgram program);
bool IsSteered(nvrtcProgram program);
void ForgetSteered(nvrtcProgram program);

}  // namespace torpor::shim
