#pragma once

namespace torpor {

// Lets this process open as many descriptors as the system allows it. The customary soft limit of
// 1024 exists for select(), and a daemon has a few descriptors for each of thousands of sessions.
void RaiseDescriptorLimit();

}  // namespace torpor
