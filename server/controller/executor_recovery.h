#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/controller/domain_seats.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/join.h"
#include "server/controller/model/session_journal.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/spare_executors.h"
#include "server/controller/session_opening.h"
#include "server/controller/session_resuming.h"

namespace torpor::server {

// Takes executors into service: tells a registered process of all sessions, then the scheduler of
// the GPU. Has a spare kept for each GPU that is served, and lets the spare take over. On the
// controller's thread.
class ExecutorRecovery {
 public:
  struct Options {
    Bytes chunk_bytes = 0;
    bool is_emulated = false;
    bool swaps_from_peers = true;
    Duration patience{};  // of an executor for the next torpord
  };

  // The arguments must outlive the object.
  ExecutorRecovery(const Options& options, ExecutorTable& executors, SpareExecutors& spares,
                   IsolationDomains& domains, DomainSeats& seats, const SessionTable& sessions,
                   SessionOpening& opening, SessionResuming& resuming, SessionJournal& journal,
                   EventSink& events, TaskLoop& loop, SessionOpening::Close close)
      : options_(options),
        executors_(executors),
        spares_(spares),
        domains_(domains),
        seats_(seats),
        sessions_(sessions),
        opening_(opening),
        resuming_(resuming),
        journal_(journal),
        events_(events),
        loop_(loop),
        close_(std::move(close)) {}

  // The process with this epoch is the executor at the seat from now on: one that is about to
  // start, or the GPU's spare.
  void Expect(ExecutorSeat seat, std::uint64_t epoch);
  // The first message of an executor's stream; closes the stream of a stranger.
  void Register(const std::shared_ptr<ExecutorChannel>& link,
                const v1::ExecutorMessage::Register& what);

  // Tells an attached executor of its domain's sessions; none if it has no domain.
  void TellOfSessions(GpuExecutor& executor);

 private:
  void OnSpareReady(const std::shared_ptr<ExecutorChannel>& link,
                    const v1::ExecutorMessage::Register& what);
  void NoteProcess(GpuProcess role, const v1::ExecutorMessage::Register& what);
  // Processes that this torpord lets live on, once their records are in the log; nullopt: none.
  std::optional<v1::DaemonMessage> OutliveMessage() const;
  // Whether the process has served nobody, or the seat's domain; settles the domain.
  bool SettleDomain(GpuExecutor& executor, const v1::ExecutorMessage::Register& what);
  void TellOf(const SessionPtr& session, GpuExecutor& executor, Join join);
  void OnRecovered(GpuExecutor& executor);
  // Tells the scheduler of a GPU that was down.
  void NoteUp(const GpuExecutor& executor);
  // Returns the GPUs of this node whose images the executor can copy.
  std::vector<GpuIndex> ImageSourcesOf(const GpuExecutor& executor) const;

  const Options options_;
  ExecutorTable& executors_;
  SpareExecutors& spares_;
  IsolationDomains& domains_;
  DomainSeats& seats_;
  const SessionTable& sessions_;
  SessionOpening& opening_;
  SessionResuming& resuming_;
  SessionJournal& journal_;
  EventSink& events_;
  TaskLoop& loop_;
  const SessionOpening::Close close_;
};

}  // namespace torpor::server
