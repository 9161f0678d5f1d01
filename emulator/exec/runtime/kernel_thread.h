#pragma once

#include <functional>

namespace torpor::emulator {

// Starts a detached thread with a stack for kernels: tens of mebibytes, enough for frames of large
// kernels; only touched pages take memory. Falls back to an ordinary thread if the system denies
// the stack.
void StartKernelThread(std::function<void()> body);

}  // namespace torpor::emulator
