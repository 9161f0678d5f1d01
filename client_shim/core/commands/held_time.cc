#include "client_shim/core/commands/held_time.h"

#include <algorithm>

namespace torpor::shim {

void HeldTime::Begin(Time now) { since_ = now; }

void HeldTime::End(Time now) {
  if (!since_) return;
  earlier_.push_back({*since_, now});
  since_.reset();
  while (earlier_.front().end < now - kPeriod) earlier_.pop_front();
}

double HeldTime::RecentShare(Time now) const {
  const Time begin = now - kPeriod;
  const auto recent = [&](const Span& span) {
    return std::max(span.end - std::max(span.begin, begin), Time::duration::zero());
  };
  Time::duration held{};
  for (const Span& span : earlier_) held += recent(span);
  if (since_) held += recent({*since_, now});
  return std::chrono::duration<double>(held) / kPeriod;
}

}  // namespace torpor::shim
