#pragma once

namespace torpor::executor {

// Saves the last words of a process whose standard error is captured: if the process is aborted or
// breaks a rule of memory, the rest of the file `captured` is copied to `original` first. Reports
// of sanitizers go to `original` at once. Both descriptors stay open as long as the process lives.
// Call once.
void KeepCrashText(int captured, int original);

}  // namespace torpor::executor
