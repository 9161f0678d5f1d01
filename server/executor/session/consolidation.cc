#include "server/executor/session/consolidation.h"

#include <chrono>
#include <set>

#include "base/status_macros.h"

namespace torpor::executor {
namespace {

std::set<SessionId> MovableSessions(SessionRegistry& registry) {
  std::set<SessionId> movable;
  for (Session* const session : registry.All()) {
    if (session->may_be_moved()) movable.insert(session->identity().id);
  }
  return movable;
}

}  // namespace

// Back-to-back requests are to find the GPU's links free.
Duration Consolidation::quiet_time() const { return std::chrono::milliseconds(200); }

absl::StatusOr<bool> Consolidation::Step(CUstream stream, const std::atomic<bool>& is_wanted) {
  bool has_moved = false;
  for (const memory::Move& move : gpu_memory_.PlanMoves(MovableSessions(registry_), kMaxMoved)) {
    if (is_wanted.load(std::memory_order_relaxed)) break;
    TORPOR_ASSIGN_OR_RETURN(Session * session, registry_.Find(move.owner));
    TORPOR_ASSIGN_OR_RETURN(const bool is_moved, session->Move(move, stream));
    if (!is_moved) break;
    has_moved = true;
  }
  return has_moved;
}

}  // namespace torpor::executor
