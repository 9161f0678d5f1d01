#pragma once

#include <deque>
#include <string>
#include <utility>

#include "server/controller/request_story.h"

namespace torpor::server {

// The last requests that are over.
class RequestHistory {
 public:
  explicit RequestHistory(std::size_t most) : max_(most) {}

  void Add(RequestStory story) {
    if (stories_.size() == max_) stories_.pop_back();
    stories_.push_front(std::move(story));
  }

  const std::deque<RequestStory>& stories() const { return stories_; }

  // The newest of that name; null: none of them.
  const RequestStory* Find(const std::string& id) const {
    for (const RequestStory& story : stories_) {
      if (story.id == id) return &story;
    }
    return nullptr;
  }

 private:
  const std::size_t max_;
  std::deque<RequestStory> stories_;  // the newest first
};

}  // namespace torpor::server
