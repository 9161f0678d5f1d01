#include "server/executor/gpu/crash_text.h"

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

// Defined by the sanitizers' runtimes only; takes a descriptor as a pointer.
extern "C" __attribute__((weak)) void __sanitizer_set_report_fd(void* descriptor);

namespace torpor::executor {
namespace {

std::atomic<int> captured_text{-1};
std::atomic<int> original_stream{-1};

// Calls only functions that a signal's handler may call.
void CopyAndDie(int signal) {
  std::array<char, 4096> text;
  off_t at = 0;
  ssize_t got = 0;
  while ((got = pread(captured_text, text.data(), text.size(), at)) > 0) {
    at += got;
    // Text that was taken before is a hole, which reads as zeros.
    if (text[0] != '\0' && write(original_stream, text.data(), static_cast<size_t>(got)) < 0) break;
  }
  std::raise(signal);  // the handler was removed on entry
}

}  // namespace

void KeepCrashText(int captured, int original) {
  captured_text = captured;
  original_stream = original;
  if (&__sanitizer_set_report_fd != nullptr) {
    __sanitizer_set_report_fd(
        reinterpret_cast<void*>(static_cast<std::intptr_t>(original)));  // NOLINT
    return;
  }
  struct sigaction action {};
  action.sa_handler = &CopyAndDie;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    // A driver may handle faults of its kernels by signals of its own.
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

}  // namespace torpor::executor
