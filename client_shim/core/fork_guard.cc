#include "client_shim/core/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace torpor::shim {
namespace {

// Lock-free: another thread may be anywhere in this code at the time of the fork.
constexpr int kNoDescriptor = -1;
struct State {
  std::atomic<bool> installed{false};
  std::array<std::atomic<int>, 64> fds;

  State() {
    for (auto& fd : fds) fd.store(kNoDescriptor);
  }
};

State& TheState() {
  static State* const state = new State();
  return *state;
}

}  // namespace

void ForkGuard::AfterForkInChild() {
  in_child_.store(true);
  for (auto& fd : TheState().fds)
    if (const int open = fd.exchange(kNoDescriptor); open != kNoDescriptor) close(open);
}

void ForkGuard::Install() {
  if (!TheState().installed.exchange(true)) pthread_atfork(nullptr, nullptr, &AfterForkInChild);
}

void ForkGuard::Watch(int fd) {
  for (auto& place : TheState().fds) {
    int none = kNoDescriptor;
    if (place.compare_exchange_strong(none, fd)) return;
  }
}

void ForkGuard::Unwatch(int fd) {
  for (auto& place : TheState().fds) {
    int watched = fd;
    if (place.compare_exchange_strong(watched, kNoDescriptor)) return;
  }
}

}  // namespace torpor::shim
