#include "server/executor/session/consolidation.h"

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

absl::StatusOr<Bytes> Consolidate(SessionRegistry& registry, ImageMemory& gpu_memory,
                                  const std::atomic<bool>& is_wanted, CUstream stream) {
  Bytes moved = 0;
  for (const memory::Move& move : gpu_memory.PlanMoves(MovableSessions(registry), kMaxMoved)) {
    if (is_wanted.load(std::memory_order_relaxed)) break;
    TORPOR_ASSIGN_OR_RETURN(Session * session, registry.Find(move.owner));
    TORPOR_ASSIGN_OR_RETURN(const bool is_moved, session->Move(move, stream));
    if (!is_moved) break;
    moved += move.bytes;
  }
  return moved;
}

}  // namespace torpor::executor
