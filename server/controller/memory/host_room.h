#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "scheduler/scheduler.h"
#include "server/controller/images/spill_store.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/image_return.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Makes room in the budget of host memory: spills images of instances that have no GPU, and brings
// images back when they are needed. Instances without a request come first and, among equals, those
// that are used least. On the controller's thread.
class HostRoom final : public ImageReturn {
 public:
  using Task = TaskLoop::Task;
  // The image of a session on the disk cannot be read.
  using OnLost = std::function<void(const SessionPtr&, const std::string& why)>;

  // All references must outlive the object.
  HostRoom(SpillStore& store, SessionSegments& segments, const InstanceTable& instances,
           const SessionTable& sessions, const scheduler::Scheduler& scheduler, EventSink& events,
           TaskLoop& loop, OnLost on_lost)
      : store_(store),
        segments_(segments),
        instances_(instances),
        sessions_(sessions),
        scheduler_(scheduler),
        events_(events),
        loop_(loop),
        on_lost_(std::move(on_lost)) {}

  // Calls `then`, perhaps at once, when the budget has room for `bytes` of `allocator`, or no more
  // can be spilled.
  void AwaitFor(const memory::RangeAllocator& allocator, Bytes bytes, Task then);
  void BringBack(const SessionPtr& session, const Then& then) override;
  // As BringBack, with another patience.
  void BringBackUntil(TimePoint until, const SessionPtr& session, const Then& then);
  // Call before the scheduler hears of a request: brings the images of the instance back ahead of
  // the GPU, if there is room, and if it is clear which instance the request will run on.
  void OnArrival(const scheduler::RequestArrived& request);

  // Keeps a part of the budget free, for sessions that begin and programs that allocate. Call once
  // a second.
  void KeepFree();

 private:
  struct Waiter {
    Bytes bytes = 0;
    // Until then the waiter must have room; unset: as long as images can be spilled.
    std::optional<TimePoint> until{};
    std::function<void(bool has_room)> then;
  };

  void Advance();
  void AdvanceLater();
  void ReturnAhead(InstanceId instance);
  // Serves waiters in their order, up to the first without room.
  void Serve(std::deque<Waiter>& waiters);
  // Whether images are spilled, or about to be. Begins if not.
  bool IsMakingRoom();
  void Spill(const SessionPtr& session);
  // Asks the scheduler to evict the image, in order to spill it then. One at a time.
  void Evict(const SessionPtr& session);
  bool IsEvicting() const;
  // Whether an image can be spilled once its session's steps are done.
  bool IsAnyBusy() const;
  // Whether the session's instance has requests that wait for a GPU.
  enum class Demand { kNone, kWaiting };
  // The session with the least use among those of this kind whose images may be spilled: at once
  // or, if `is_on_gpu`, after an eviction. Null if there is none.
  SessionPtr Choose(Demand demand, bool is_on_gpu) const;
  bool MaySpill(const ClientSession& session) const;
  bool HasRoom(Bytes bytes) const { return bytes <= segments_.free_host_bytes(); }
  void Read(const SessionPtr& session, const Then& then);
  // The image is on the disk, or in host memory again.
  void NoteMoved(ClientSession& session);

  SpillStore& store_;
  SessionSegments& segments_;
  const InstanceTable& instances_;
  const SessionTable& sessions_;
  const scheduler::Scheduler& scheduler_;
  EventSink& events_;
  TaskLoop& loop_;
  const OnLost on_lost_;
  std::deque<Waiter> allocations_;  // before returns: a lease may end after an allocation only
  std::deque<Waiter> returns_;
  bool is_advancing_ = false;
  bool is_spilling_ = false;
  bool is_timer_set_ = false;
  SessionId evicted_;  // by request of this object
  TimePoint evicted_at_{};
};

}  // namespace torpor::server
