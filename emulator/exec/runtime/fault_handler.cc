#include "emulator/exec/runtime/fault_handler.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <mutex>

#include "emulator/exec/runtime/block_runner.h"

namespace torpor::emulator {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction previous[kSignals.size()];  // written once, before any handler runs

// Calls the handler installed before.
void HandOn(int signal, siginfo_t* info, void* context) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& old = previous[i];
    if ((old.sa_flags & SA_SIGINFO) != 0 && old.sa_sigaction != nullptr) {
      return old.sa_sigaction(signal, info, context);
    }
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  }
  // Returning repeats the fault, now with the default action.
  ::signal(signal, SIG_DFL);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  BlockRunner* const runner = BlockRunner::Current();
  // si_code <= 0: sent by someone, no fault.
  if (runner == nullptr || info->si_code <= 0) return HandOn(signal, info, context);
  runner->RaiseFault(signal, reinterpret_cast<std::uint64_t>(info->si_addr));
}

class SignalStack {
 public:
  SignalStack() {
    constexpr std::size_t kBytes = std::size_t{64} << 10;
    stack_t present = {};
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::malloc(kBytes);
    stack_t stack = {};
    stack.ss_sp = memory_;
    stack.ss_size = kBytes;
    if (memory_ != nullptr) sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    if (memory_ == nullptr) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    std::free(memory_);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
};

}  // namespace

void InstallFaultHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    // The handler leaves by siglongjmp: no signal may stay blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &previous[i]);
    }
  });
}

void InstallSignalStack() { thread_local const SignalStack stack; }

}  // namespace torpor::emulator
