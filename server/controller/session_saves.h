#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/status.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Has the memory of an instance saved between two replies, whether its sessions hold leases or not
// (docs/decisions/0045). On the controller's thread.
class SessionSaves {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // The arguments must outlive the object.
  SessionSaves(const SessionTable& sessions, ImageSwaps& swaps, TaskLoop& loop)
      : sessions_(sessions), swaps_(swaps), loop_(loop) {}

  // Calls `done` once, as late as a client answers. OK: host images have all that the instance's
  // sessions had done at the call. Aborted: an executor has died, or a lease is just ending: ask
  // again. Others: the memory cannot be saved, or was lost since `begin`, when what is to be saved
  // began. Sessions that were lost before, clients that have been away since before, and processes
  // that have ended have no part.
  void Save(const FunctionInstance& instance, TimePoint begin, const Done& done);
  // Takes a session's answer. Ignores ids without a save.
  void OnReply(const SessionPtr& session, const wire::SaveMemoryReply& reply);
  // The session's process has ended, with its memory: ends the saves that wait for the session.
  void OnClosed(const ClientSession& session);

 private:
  struct Asked {
    SessionId session;
    Done done;
  };

  void SaveSession(const FunctionInstance& instance, const SessionPtr& session, TimePoint begin,
                   const Done& done);
  // Of a session whose client is away, or whose memory is lost.
  absl::Status StatusOfAway(const ClientSession& session, TimePoint begin) const;
  static absl::Status StatusOfLost(const ClientSession& session, TimePoint begin);
  // Lets a session save that holds the GPU.
  void Ask(const ClientSession& session, const Done& done);
  // Saves what a session without a lease has left on a GPU.
  void WriteBack(const SessionPtr& session, const Done& done);

  const SessionTable& sessions_;
  ImageSwaps& swaps_;
  TaskLoop& loop_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Asked> asked_;  // by the id of the save
};

}  // namespace torpor::server
