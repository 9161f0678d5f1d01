#include "emulator/exec/runtime/kernel_thread.h"

#include <pthread.h>

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

namespace torpor::emulator {
namespace {

// A kernel of thirteen thousand PTX instructions (PyTorch's std_mean) needs more than the usual 8
// MiB.
constexpr std::size_t kThreadStackBytes = std::size_t{128} << 20;

using Body = std::function<void()>;

void* Run(void* body) {
  const std::unique_ptr<Body> own(static_cast<Body*>(body));
  (*own)();
  return nullptr;
}

}  // namespace

void StartKernelThread(Body body) {
  auto own = std::make_unique<Body>(std::move(body));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kThreadStackBytes);
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, &Run, own.get()) == 0;
  pthread_attr_destroy(&attributes);
  if (started) {
    (void)own.release();
  } else {
    std::thread(std::move(*own)).detach();
  }
}

}  // namespace torpor::emulator
