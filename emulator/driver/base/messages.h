#pragma once

#include <cuda.h>

#include <string_view>

namespace torpor::emulator {

// Tells whoever listens; where nobody does, one line on stderr: "torpor-emulator: ...".
// Thread-safe.
void Say(std::string_view message);

// Listeners to what is said, by cuLogsRegisterCallback's rules. A listener may be called until
// Remove has returned, by any thread, and must not add or remove one.
CUlogsCallbackHandle AddListener(CUlogsCallback call, void* data);
// False: there is no such listener.
bool RemoveListener(CUlogsCallbackHandle listener);

}  // namespace torpor::emulator
