#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "server/controller/instance_health.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/requests.h"
#include "server/controller/session_opening.h"
#include "server/repository/logged_sessions.h"

namespace torpor::server {

// Brings sessions of an earlier torpord together with their clients again: from a client's Resume
// to the answers of its open requests. Closes sessions whose clients stay away. On the controller's
// thread.
class SessionResuming {
 public:
  struct Handlers {
    SessionOpening::Close close;
    // A client of the instance has a session that cannot go on.
    std::function<void(const FunctionInstance&, const std::string& why)> refused;
  };

  // The arguments must outlive the object.
  SessionResuming(InstanceTable& instances, SessionTable& sessions, ExecutorTable& executors,
                  InstanceHealth& health, SessionOpening& opening, LeaseService& leases,
                  Requests& requests, Telemetry& telemetry, TaskLoop& loop, Handlers handlers)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        health_(health),
        opening_(opening),
        leases_(leases),
        requests_(requests),
        telemetry_(telemetry),
        loop_(loop),
        handlers_(std::move(handlers)) {}

  // --- At the start ---
  // The session waits for its client.
  void Await(SessionId session, const LoggedSession& logged);
  // The session could not be restored.
  void NoteLost(SessionId session, const std::string& why) { lost_[session] = why; }
  // Closes sessions that still wait `patience` after the first torpord without their client began.
  void BeginPatience(Duration patience);

  // --- Messages of clients ---
  // The first message of a stream.
  void Greet(const SessionPtr& newcomer, const wire::Resume& resume);
  // Answers a request whose effect an earlier torpord has recorded. False for all other messages.
  bool AnswerAgain(const SessionPtr& session, const wire::ClientMessage& message);
  // The session's stream has ended while it waited. False if it did not wait.
  bool OnClosed(const SessionPtr& session);

  // Answers the clients that wait. Call when an executor has become ready.
  void AnswerWaiting();

 private:
  // What an earlier torpord has answered, or was about to: address by request; 0 for frees.
  using Answers = std::map<std::uint64_t, std::uint64_t>;

  // Returns the session that the message means.
  absl::StatusOr<SessionPtr> Find(const wire::Resume& resume) const;
  // Returns why the session cannot go on; empty if it can.
  std::string FindObstacle(const ClientSession& session, const wire::Hello& hello);
  void Refuse(const SessionPtr& newcomer, const wire::Resume& resume, const std::string& why);
  void Resume(const SessionPtr& session);
  void Expire(SessionId id, Duration patience);
  // Requests that only this session could do again are lost with it.
  void Close(const SessionPtr& session, const std::string& why, OutlivedFate fate);

  InstanceTable& instances_;
  SessionTable& sessions_;
  ExecutorTable& executors_;
  InstanceHealth& health_;
  SessionOpening& opening_;
  LeaseService& leases_;
  Requests& requests_;
  Telemetry& telemetry_;
  TaskLoop& loop_;
  const Handlers handlers_;
  std::map<SessionId, std::string> lost_;  // why
  // No client has asked for them yet; since when they wait.
  std::map<SessionId, TimePoint> awaited_;
  std::set<SessionId> asking_;  // their clients wait for an executor
  std::map<SessionId, Answers> answers_;
};

}  // namespace torpor::server
