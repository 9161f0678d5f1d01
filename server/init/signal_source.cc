#include "server/init/signal_source.h"

#include <unistd.h>

namespace torpor::init {

SignalSource::SignalSource() {
  signal(SIGPIPE, SIG_IGN);  // nobody may read the log any more
  signal(SIGCHLD, SIG_DFL);  // ignored, children would end without a status
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, &inherited_mask_);
  descriptor_.Reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<signalfd_siginfo> SignalSource::Next() {
  signalfd_siginfo info{};
  if (read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

void SignalSource::RestoreInChild() const {
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

}  // namespace torpor::init
