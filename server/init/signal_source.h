#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>

#include "base/unique_fd.h"

namespace torpor::init {

// The signals that torpor-init passes on, and the ends of child processes, through a descriptor.
// At most one may exist; the process has one thread.
class SignalSource {
 public:
  SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  // Becomes readable when a signal comes.
  int descriptor() const { return descriptor_.get(); }
  // The next signal; nullopt if none has come. Does not block.
  std::optional<signalfd_siginfo> Next();

  // Gives a process just forked what the program would have without torpor-init.
  void RestoreInChild() const;

 private:
  sigset_t inherited_mask_{};
  UniqueFd descriptor_;
};

}  // namespace torpor::init
