#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/function_instance.h"
#include "server/repository/session_keeper.h"
#include "server/repository/session_log.h"

namespace torpor::server {

// Records sessions for the next torpord: each note outlives this process once the call has
// returned, so that it comes before the message that tells a client. On the controller's thread.
class SessionJournal {
 public:
  // Null: no session outlives this torpord. Both must outlive the journal.
  SessionJournal(SessionLog* log, SessionKeeper* keeper) : log_(log), keeper_(keeper) {}

  // Sessions are recorded from Begin on; the other functions ignore sessions that are not.
  void Begin(ClientSession& session, const FunctionInstance& instance,
             const SessionFiles::Sizes& sizes);
  // Goes on with a session of an earlier torpord.
  void GoOn(ClientSession& session) { session.journal = this; }
  void NoteAllocated(const ClientSession& session, MemoryKind kind, std::uint64_t request,
                     memory::Block block);
  void NoteFreed(const ClientSession& session, MemoryKind kind, std::uint64_t request,
                 Bytes offset);
  // To be called when the image may have gained or lost an unsaved lease.
  void NoteUnsaved(const ClientSession& session);
  // The session waits for its client since then; nullopt: the client is there.
  void NoteAway(const ClientSession& session, std::optional<TimePoint> since);
  // The image is in its spill file, and about to leave host memory; or is in host memory again.
  void NoteSpilled(const ClientSession& session, const SpilledImage& image);
  void NoteImageBack(const ClientSession& session);
  // What the session has done from now on cannot be had again by another torpord.
  void Exclude(const ClientSession& session, const std::string& why);
  void Close(ClientSession& session);

  // Whether sessions are recorded.
  bool is_kept() const { return log_ != nullptr; }
  // A process of the GPU, which the next torpord goes on with. An executor, which may have
  // sessions' files mapped, is noted before it is told of any. `place`: of executors, 0 or 1.
  void NoteProcess(GpuProcess role, GpuIndex gpu, std::int64_t process_id, std::uint32_t place = 0);

  // The function has got its last strike now.
  void NoteStrike(const std::string& function, unsigned strikes, TimePoint now);

  // The sessions go on with the next torpord as they are: records nothing more.
  void Stop() { log_ = nullptr; }

 private:
  const LoggedSession* LoggedOf(const ClientSession& session) const;
  void NoteSegments(const ClientSession& session, MemoryKind kind);

  SessionLog* log_;
  SessionKeeper* const keeper_;
  bool has_warned_ = false;  // that a session is not kept
};

}  // namespace torpor::server
