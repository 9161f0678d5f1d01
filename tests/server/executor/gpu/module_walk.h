#pragma once

namespace torpor::executor {

// Reads a module as a driver does, which is told no size: it trusts every length and pointer in it,
// so that one that leads astray is a crash, or AddressSanitizer's to tell.
void WalkModule(const void* image);

}  // namespace torpor::executor
