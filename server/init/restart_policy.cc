#include "server/init/restart_policy.h"

#include <csignal>
#include <utility>

namespace torpor::init {
namespace {

// A command that was done, wrong flags or configuration, a program that cannot be executed or is
// not there: another start would end the same way.
bool IsOfNoServer(int exit_status) {
  return exit_status == 0 || exit_status == 2 || exit_status == 126 || exit_status == 127;
}

}  // namespace

void RestartPolicy::OnSignal(int number) {
  if (number == SIGTERM || number == SIGINT) is_stopping_ = true;
  if (number == SIGUSR1) is_restart_wanted_ = true;
}

std::optional<Duration> RestartPolicy::OnEnd(int exit_status, Duration run) {
  if (is_stopping_) return std::nullopt;
  if (!has_served_ && !is_restart_wanted_ && IsOfNoServer(exit_status)) return std::nullopt;
  is_restart_wanted_ = false;
  return pauses_.Next(std::exchange(serves_, false) ? run : Duration::zero());
}

}  // namespace torpor::init
