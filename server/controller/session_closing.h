#pragma once

#include <string>

#include "server/controller/images/image_swaps.h"
#include "server/controller/instance_health.h"
#include "server/controller/lease_service.h"
#include "server/controller/memory/shared_allocations.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/session_saves.h"
#include "server/controller/session_storage.h"

namespace torpor::server {

// Closes sessions: ends the work, lets executors drop their parts, and forgets the session. On the
// controller's thread.
class SessionClosing {
 public:
  // The arguments must outlive the object.
  SessionClosing(InstanceTable& instances, SessionTable& sessions, ExecutorTable& executors,
                 InstanceHealth& health, ImageSwaps& swaps, LeaseService& leases,
                 ImplicitRequests& implicit, SessionSaves& saves, SharedAllocations& shared,
                 SessionStorage& storage, EventSink& events, TaskLoop& loop)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        health_(health),
        swaps_(swaps),
        leases_(leases),
        implicit_(implicit),
        saves_(saves),
        shared_(shared),
        storage_(storage),
        events_(events),
        loop_(loop) {}

  // Begins to close the session, and with an open session its siblings. The image stays as long as
  // other processes have its memory open. `reason` is for the client and the log.
  void Close(const SessionPtr& session, const std::string& reason);
  // The last steps: executors let go of the session, and the tables forget the session.
  void Finish(const SessionPtr& session, const StepQueue::Finish& finish);

 private:
  // Ends the work of all sessions of the process, since each may use the memory of all; of a lone
  // session only if other processes have its memory open.
  void Quiesce(const SessionPtr& session, const TaskLoop::Task& then);
  // Calls `then` when no executor holds anything of the session any more.
  void CloseOnExecutors(const SessionPtr& session, const TaskLoop::Task& then);
  void Forget(const SessionPtr& session);

  InstanceTable& instances_;
  SessionTable& sessions_;
  ExecutorTable& executors_;
  InstanceHealth& health_;
  ImageSwaps& swaps_;
  LeaseService& leases_;
  ImplicitRequests& implicit_;
  SessionSaves& saves_;
  SharedAllocations& shared_;
  SessionStorage& storage_;
  EventSink& events_;
  TaskLoop& loop_;
};

// Tells an open session's client that the session ends for good: else the client would look for
// another torpord.
void TellEnd(const ClientSession& session, const std::string& reason);

}  // namespace torpor::server
