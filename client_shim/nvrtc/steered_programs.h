#pragma once

#include <nvrtc.h>

namespace torpor::shim {

// Whether machine code is of no use: the session's GPU is emulated. Opens the session.
bool NeedsPtx();

// The programs that asked for machine code and were compiled to PTX. Thread-safe.
void RememberSteered(nvrtcProgram program);
bool IsSteered(nvrtcProgram program);
void ForgetSteered(nvrtcProgram program);

}  // namespace torpor::shim
