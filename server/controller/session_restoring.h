#pragma once

#include "absl/status/status.h"
#include "server/controller/lease_service.h"
#include "server/controller/memory/device_allocations.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/isolation_domains.h"
#include "server/controller/model/session_journal.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/session_resuming.h"
#include "server/controller/session_storage.h"

namespace torpor::server {

// Makes the sessions that an earlier torpord has recorded this torpord's, at the start: with their
// files, addresses and allocations, on no GPU, and without their clients. On the controller's
// thread.
class SessionRestoring {
 public:
  // The arguments must outlive the object.
  SessionRestoring(InstanceTable& instances, SessionTable& sessions, IsolationDomains& domains,
                   SessionStorage& storage, DeviceAllocations& allocations, LeaseService& leases,
                   SessionJournal& journal, SessionResuming& resuming, Telemetry& telemetry)
      : instances_(instances),
        sessions_(sessions),
        domains_(domains),
        storage_(storage),
        allocations_(allocations),
        leases_(leases),
        journal_(journal),
        resuming_(resuming),
        telemetry_(telemetry) {}

  // Restores what can be restored; logs and forgets the rest. Before any session, lease or
  // executor.
  void Restore(SessionLog& log, SessionKeeper& keeper);

 private:
  // Says in the error why the session is lost.
  absl::Status RestoreOne(const LoggedSession& logged, SessionKeeper& keeper);
  absl::Status CheckInstance(const SessionOpened& opened);

  InstanceTable& instances_;
  SessionTable& sessions_;
  IsolationDomains& domains_;
  SessionStorage& storage_;
  DeviceAllocations& allocations_;
  LeaseService& leases_;
  SessionJournal& journal_;
  SessionResuming& resuming_;
  Telemetry& telemetry_;
};

}  // namespace torpor::server
