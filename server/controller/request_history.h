#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>

#include "server/controller/request_trace.h"

namespace torpor::server {

// The traces of the last finished requests. Not thread-safe.
class RequestHistory {
 public:
  // `max` > 0: the oldest trace makes room for a new one.
  explicit RequestHistory(std::size_t max) : max_(max) {}

  void Add(RequestTrace trace) {
    if (traces_.size() == max_) traces_.pop_back();
    traces_.push_front(std::move(trace));
  }

  // The newest first.
  const std::deque<RequestTrace>& traces() const { return traces_; }

  // Returns the newest trace named `id`, null if there is none. Valid until the next Add.
  const RequestTrace* Find(const std::string& id) const {
    for (const RequestTrace& trace : traces_) {
      if (trace.id == id) return &trace;
    }
    return nullptr;
  }

 private:
  const std::size_t max_;
  std::deque<RequestTrace> traces_;
};

}  // namespace torpor::server
