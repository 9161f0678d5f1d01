#pragma once

namespace torpor::emulator {

// Installs a handler that turns faults of generated code into errors of the launch. Passes other
// faults to the previous handlers. Idempotent, thread-safe.
void InstallFaultHandler();

// Gives the calling thread a stack for signal handlers until the thread ends. Keeps an existing
// stack.
void InstallSignalStack();

}  // namespace torpor::emulator
