#pragma once

#include <deque>
#include <functional>

#include "scheduler/scheduler.h"
#include "scheduler/setup.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Feeds events to the scheduler and applies its actions in order: an action that leads to new
// events is finished before their actions begin. On the controller's thread.
class SchedulerFeed final : public EventSink {
 public:
  struct Handlers {
    std::function<void(const scheduler::Event&)> before;  // before the scheduler hears of the event
    std::function<void(const scheduler::Actions&)> decided;  // before anything is carried out
    std::function<void(const scheduler::Action&)> apply;
    std::function<void()> settled;  // all decided actions have been carried out
  };
  // Records each event and the scheduler's actions.
  using Record = std::function<void(TimePoint, const scheduler::Event&, const scheduler::Actions&)>;

  // `loop` must outlive the feed; `record` may be null.
  SchedulerFeed(scheduler::Setup setup, TaskLoop& loop, Record record);

  // Before the first Feed.
  void SetHandlers(Handlers handlers) { handlers_ = std::move(handlers); }

  void Feed(const scheduler::Event& event) override;

  const scheduler::Scheduler& scheduler() const { return scheduler_; }

 private:
  scheduler::Scheduler scheduler_;
  TaskLoop& loop_;
  const Record record_;
  Handlers handlers_;
  std::deque<scheduler::Action> actions_;
  bool is_applying_ = false;
};

}  // namespace torpor::server
