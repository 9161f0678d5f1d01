#pragma once

#include <pthread.h>

namespace torpor {

// Names the calling thread for debuggers, `top -H` and the log of a crash. At most 15 characters.
inline void NameThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace torpor
