#pragma once

#include <functional>

#include "absl/status/status.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Lets executors map images resident on other GPUs, for sessions that may use each other's memory
// (SessionTable::PeersOf). Called from steps of the session in question. On the controller's
// thread.
class PeerAccess {
 public:
  using Then = std::function<void(absl::Status)>;
  using Task = std::function<void()>;

  // The arguments must outlive the object.
  PeerAccess(ExecutorTable& executors, const SessionTable& sessions)
      : executors_(executors), sessions_(sessions) {}

  // The image has become resident: lets peers map it, and its executor map theirs. Calls `then`
  // with the first failure.
  void Share(const SessionPtr& session, const Then& then);
  // The image has grown: lets executors map the new parts too. Calls `then` with the first failure.
  void Update(const SessionPtr& session, const Then& then);
  // The image is about to lose chunks: executors unmap all but the live parts, or everything. Kills
  // an executor that does not let go, and awaits its loss.
  enum class Keep { kLive, kNothing };
  void Withdraw(const SessionPtr& session, Keep keep, const Task& then);
  // The image leaves `gpu`: the executor there unmaps the peers' images.
  void ForgetPeersAt(const SessionPtr& session, GpuIndex gpu, const Task& then);

 private:
  // Tells the executor of `gpu` which parts of the image to map.
  void Map(const ClientSession& session, GpuIndex gpu, Keep keep, const GpuExecutor::OnDone& then);

  ExecutorTable& executors_;
  const SessionTable& sessions_;
};

}  // namespace torpor::server
