#pragma once

#include <pthread.h>

namespace torpor::shim {

// Calls `function` at the end of each thread that has armed it, with the thread's value, which is
// not null. The thread-local variables that it tidies up need no destructor of their own, so that
// exit handlers may still use them.
class ThreadEnd {
 public:
  explicit ThreadEnd(void (*function)(void* value)) { pthread_key_create(&key_, function); }

  void Arm(void* value) const { pthread_setspecific(key_, value); }

 private:
  pthread_key_t key_{};
};

}  // namespace torpor::shim
