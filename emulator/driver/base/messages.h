#pragma once

#include <cuda.h>

#include <string_view>

namespace torpor::emulator {

// Passes `message` to the registered listeners, or prints "torpor-emulator: ..." on stderr if there
// are none. Thread-safe.
void Say(std::string_view message);
// As Say, but prints nothing. Returns whether there is a listener.
bool SayToListeners(std::string_view message);

// Adds a listener, by the rules of cuLogsRegisterCallback. Any thread may call the listener until
// RemoveListener returns; a listener must not add or remove listeners.
CUlogsCallbackHandle AddListener(CUlogsCallback call, void* data);
// Returns false if no such listener is registered.
bool RemoveListener(CUlogsCallbackHandle listener);

}  // namespace torpor::emulator
