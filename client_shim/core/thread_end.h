#pragma once

#include <pthread.h>

namespace torpor::shim {

// Calls `function` at the end of each thread that has called Arm, with the thread's value, which
// must not be null. Thread-local variables cleaned up by `function` need no destructor, so that
// exit handlers may still use them.
class ThreadEnd {
 public:
  explicit ThreadEnd(void (*function)(void* value)) { pthread_key_create(&key_, function); }

  void Arm(void* value) const { pthread_setspecific(key_, value); }

 private:
  pthread_key_t key_{};
};

}  // namespace torpor::shim
