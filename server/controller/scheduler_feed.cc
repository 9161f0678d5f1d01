#include "server/controller/scheduler_feed.h"

#include <utility>

namespace torpor::server {

SchedulerFeed::SchedulerFeed(scheduler::Setup setup, TaskLoop& loop, Record record)
    : scheduler_(std::move(setup.policies), setup.options),
      loop_(loop),
      record_(std::move(record)) {}

void SchedulerFeed::Feed(const scheduler::Event& event) {
  const TimePoint now = loop_.Now();
  handlers_.before(event);
  const scheduler::Actions decided = scheduler_.OnEvent(event, now);
  if (record_) record_(now, event, decided);
  actions_.insert(actions_.end(), decided.begin(), decided.end());
  handlers_.decided(decided);
  // An action may feed events: their actions wait for their turn.
  if (std::exchange(is_applying_, true)) return;
  while (!actions_.empty()) {
    const scheduler::Action action = actions_.front();
    actions_.pop_front();
    handlers_.apply(action);
  }
  is_applying_ = false;
  handlers_.settled();
}

}  // namespace torpor::server
