#include "emulator/exec/runtime/kernel_job.h"

#include <utility>

namespace torpor::emulator {

void JobProgress::Fail(Failure<ExecError> reason) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::move(reason);
  failed = true;
}

}  // namespace torpor::emulator
