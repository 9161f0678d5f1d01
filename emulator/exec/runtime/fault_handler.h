#pragma once

namespace torpor::emulator {

// Makes faults of generated code errors of their launch. Other faults go to the handlers that
// were there before. Idempotent, thread-safe.
void InstallFaultHandler();

// Gives the calling thread a stack for signal handlers, unless it has one, until it ends.
void InstallSignalStack();

}  // namespace torpor::emulator
