#pragma once

namespace torpor {

// Lets this process open as many descriptors as the system allows it. The customary soft limit of
// 1024 exists for select(), and a daemon has a few descriptors for each of thousands of sessions.
void RaiseDescriptorLimit();

// Returns how many of the descriptors that this process may open connections from outside should
// leave: a quarter, at most 512.
int ReservedDescriptors();

}  // namespace torpor
