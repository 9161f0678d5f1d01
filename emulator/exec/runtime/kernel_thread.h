#pragma once

#include <functional>

namespace torpor::emulator {

// Starts a detached thread on which kernels may run: its stack has room for the frames of large
// ones, tens of mebibytes, of which only what they reach is ever memory. Without such a stack, it
// is an ordinary thread.
void StartKernelThread(std::function<void()> body);

}  // namespace torpor::emulator
