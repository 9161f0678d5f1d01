#include "emulator/driver/base/messages.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace torpor::emulator {
namespace {

struct Listener {
  CUlogsCallback call;
  void* data;
};

// The listeners of the process, by the numbers behind their handles.
struct Listeners {
  std::mutex mutex;
  std::map<std::uintptr_t, Listener> by_id;
  std::uintptr_t next_id = 1;
};

// Never destroyed.
Listeners& TheListeners() {
  static Listeners* const listeners = new Listeners;  // streams' threads may outlive statics
  return *listeners;
}

}  // namespace

bool SayToListeners(std::string_view message) {
  Listeners& listeners = TheListeners();
  std::string text(message);
  const std::lock_guard lock(listeners.mutex);
  for (const auto& [id, listener] : listeners.by_id) {
    listener.call(listener.data, CU_LOG_LEVEL_ERROR, text.data(), text.size());
  }
  return !listeners.by_id.empty();
}

void Say(std::string_view message) {
  if (SayToListeners(message)) return;
  const std::string line = "torpor-emulator: " + std::string(message) + "\n";
  std::fputs(line.c_str(), stderr);
}

CUlogsCallbackHandle AddListener(CUlogsCallback call, void* data) {
  Listeners& listeners = TheListeners();
  const std::lock_guard lock(listeners.mutex);
  const std::uintptr_t id = listeners.next_id++;
  listeners.by_id.emplace(id, Listener{call, data});
  return reinterpret_cast<CUlogsCallbackHandle>(id);  // NOLINT(performance-no-int-to-ptr)
}

bool RemoveListener(CUlogsCallbackHandle listener) {
  Listeners& listeners = TheListeners();
  const std::lock_guard lock(listeners.mutex);
  return listeners.by_id.erase(reinterpret_cast<std::uintptr_t>(listener)) > 0;
}

}  // namespace torpor::emulator
