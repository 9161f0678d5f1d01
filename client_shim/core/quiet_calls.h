#pragma once

namespace torpor::shim {

// Whether the calling thread's calls are the shim's own ("quiet"): the program does not see their
// errors, which must still be reported to the program later. False at first.
bool CallsAreQuiet();
// Sets the calling thread's mark and returns the previous one.
bool SetCallsQuiet(bool quiet);

}  // namespace torpor::shim
