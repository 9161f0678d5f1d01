#include "client_shim/nvrtc/steered_programs.h"

#include <mutex>
#include <unordered_set>

#include "client_shim/core/client_core.h"

namespace torpor::shim {
namespace {

struct Programs {
  std::mutex mutex;
  std::unordered_set<nvrtcProgram> steered;  // guarded by mutex
};

Programs& ThePrograms() {
  static auto* const programs = new Programs();
  return *programs;
}

}  // namespace

bool NeedsPtx() {
  ClientCore& core = *torpor_client_core();
  return core.Start() == cudaSuccess && core.session().is_emulated;
}

void RememberSteered(nvrtcProgram program) {
  std::lock_guard lock(ThePrograms().mutex);
  ThePrograms().steered.insert(program);
}

bool IsSteered(nvrtcProgram program) {
  std::lock_guard lock(ThePrograms().mutex);
  return ThePrograms().steered.contains(program);
}

void ForgetSteered(nvrtcProgram program) {
  std::lock_guard lock(ThePrograms().mutex);
  ThePrograms().steered.erase(program);
}

}  // namespace torpor::shim
