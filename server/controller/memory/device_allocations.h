#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "scheduler/events.h"
#include "server/controller/images/peer_access.h"
#include "server/controller/memory/freed_pages.h"
#include "server/controller/memory/host_room.h"
#include "server/controller/memory/memory_limits.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Allocates and frees device memory of sessions. Asks the scheduler before an image grows by
// chunks. Answers the client by MemoryReply. On the controller's thread.
class DeviceAllocations {
 public:
  // The arguments must outlive the object.
  DeviceAllocations(const InstanceTable& instances, const SessionTable& sessions,
                    ExecutorTable& executors, PeerAccess& peers, const MemoryLimits& limits,
                    SessionSegments& segments, HostRoom& room, const FreedPages& freed,
                    EventSink& events, TaskLoop& loop)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        peers_(peers),
        limits_(limits),
        segments_(segments),
        room_(room),
        freed_(freed),
        events_(events),
        loop_(loop) {}

  void Malloc(const SessionPtr& session, const wire::Malloc& call);
  void Free(const SessionPtr& session, const wire::Free& call);
  // Tells the scheduler of the chunks that the session of an earlier torpord has, and where they
  // are. Before any executor serves.
  void Restore(const ClientSession& session);
  void GetInfo(const ClientSession& session, const wire::MemGetInfo& call) const;

  // The scheduler's answer to GrowthWanted; exactly one for each growth.
  void OnGrowthAnswered(scheduler::GrowthId growth, bool is_allowed);

  // The rest of a step: frees the allocation at `offset` on the GPU and in the host's image. Calls
  // `then` with false if no allocation begins there.
  void FreeNow(const SessionPtr& session, Bytes offset, const std::function<void(bool)>& then);

 private:
  // An allocation with an address, but without memory yet.
  struct Allocation {
    SessionPtr session;
    std::uint64_t request = 0;
    memory::Block block;
    StepQueue::Finish finish;
  };

  // Makes room in host memory first.
  void MallocWithRoom(const SessionPtr& session, const wire::Malloc& call,
                      const StepQueue::Finish& finish);
  void MallocNow(const SessionPtr& session, const wire::Malloc& call,
                 const StepQueue::Finish& finish);
  void FreeInStep(const SessionPtr& session, const wire::Free& call,
                  const StepQueue::Finish& finish);
  // Returns why the session cannot have `bytes` more, empty if it can.
  std::string ReasonToRefuse(const ClientSession& session, Bytes bytes) const;
  void AskToGrow(const Allocation& what, Bytes chunks);
  void Grow(const Allocation& what);
  void GrowNow(const Allocation& what, const StepQueue::Finish& finish_step);
  void GrowOnGpu(const Allocation& what, const StepQueue::Finish& finish_step);
  // `uncharged`: bytes of new chunks not set aside by the scheduler.
  void UndoMalloc(const Allocation& what, Bytes uncharged, const std::string& message);
  // Adds the new block where the scheduler has set memory aside for it beside the image's GPU.
  void GrowReplicas(const ClientSession& session, memory::Block block, const TaskLoop::Task& then);
  // Gives the block's memory back on all GPUs that hold some.
  void Shrink(const SessionPtr& session, memory::Block block, const TaskLoop::Task& then);
  void ShrinkOn(const ClientSession& session, const std::set<GpuIndex>& gpus,
                const v1::DaemonMessage& message, const TaskLoop::Task& then);
  // Clears the block in the host's image; `emptied`: chunks emptied by freeing the block.
  void ClearFreed(const SessionPtr& session, memory::Block block, memory::Block emptied,
                  const TaskLoop::Task& then);

  const InstanceTable& instances_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  PeerAccess& peers_;
  const MemoryLimits& limits_;
  SessionSegments& segments_;
  HostRoom& room_;
  const FreedPages& freed_;
  EventSink& events_;
  TaskLoop& loop_;
  std::map<scheduler::GrowthId, std::function<void(bool is_allowed)>> growths_;
  std::uint64_t next_growth_ = 1;
};

}  // namespace torpor::server
