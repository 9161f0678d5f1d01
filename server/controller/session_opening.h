#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/config.h"
#include "server/controller/domain_seats.h"
#include "server/controller/instance_health.h"
#include "server/controller/memory/memory_limits.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_journal.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/session_quotas.h"
#include "server/controller/session_storage.h"
#include "server/controller/wrong_tokens.h"

namespace torpor::server {

// Opens sessions: from a client's Hello over the executors' OpenSession to the client's HelloAck.
// On the controller's thread.
class SessionOpening {
 public:
  struct Options {
    std::string anonymous_function;  // for clients without a token; empty: none
    std::string descriptor_socket;
    Bytes window_bytes = 0;
    bool is_emulated = false;
    Duration hello_timeout{};                         // for the first executor to become ready
    int max_sessions = SessionConfig().max_sessions;  // of all functions
  };
  using Close = std::function<void(const SessionPtr&, const std::string& reason)>;

  // The arguments must outlive the object.
  SessionOpening(Options options, InstanceTable& instances, const SessionTable& sessions,
                 ExecutorTable& executors, IsolationDomains& domains, DomainSeats& seats,
                 InstanceHealth& health, const MemoryLimits& limits, SessionStorage& storage,
                 SessionJournal& journal, Telemetry& telemetry, TaskLoop& loop, Close close);

  // --- First messages of sessions ---
  void Greet(const SessionPtr& session, const wire::Hello& hello);
  void Greet(const SessionPtr& session, const wire::DeviceHello& hello);
  void Greet(const SessionPtr& session, const wire::Inquiry& inquiry);
  // The client has accepted the session, or failed to open it.
  void Acknowledge(const SessionPtr& session, const wire::HelloAck& ack);

  // Opens all waiting sessions that can be opened now. Call when an executor has become ready.
  void OpenWaiting();
  // Refuses sessions from now on.
  void Stop() { is_stopped_ = true; }

  // Returns null if no instance has the token.
  FunctionInstance* InstanceForToken(const std::string& token);
  // How executors are told of the session.
  v1::DaemonMessage OpenMessage(const ClientSession& session) const;

 private:
  // `secondary`: null for a process's first session.
  void Greet(const SessionPtr& session, const wire::Hello& hello,
             const wire::DeviceHello* secondary);
  // Makes `session` a secondary session of the process named by `hello`.
  absl::Status JoinProcess(ClientSession& session, const wire::DeviceHello& hello) const;
  void Refuse(const SessionPtr& session, std::int32_t error, const std::string& message);
  // Settles FunctionInstance::described_as. False: too few GPUs have been ready so far.
  bool SettleDescription(FunctionInstance& instance) const;
  std::vector<wire::DeviceDescription> DescribeDevices(const FunctionInstance& instance) const;
  // Settles with whom the session shares executors, modules and equal blocks.
  std::string SettleDomain(ClientSession& session);
  void AnswerInquiry(const SessionPtr& session);
  void Open(const SessionPtr& session);
  void OnExecutorsTold(const SessionPtr& session, const absl::Status& status);
  void Offer(const SessionPtr& session);

  const Options options_;
  const SessionQuotas quotas_;
  InstanceTable& instances_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  IsolationDomains& domains_;
  DomainSeats& seats_;
  InstanceHealth& health_;
  const MemoryLimits& limits_;
  SessionStorage& storage_;
  SessionJournal& journal_;
  TaskLoop& loop_;
  const Close close_;
  WrongTokens wrong_tokens_;
  bool is_stopped_ = false;
};

// A session for logs.
std::string Describe(const ClientSession& session);

}  // namespace torpor::server
