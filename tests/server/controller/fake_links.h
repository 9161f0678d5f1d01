#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/links/links.h"

namespace torpor::server {

// A client as the controller sees it: keeps what it was sent.
class FakeSessionLink final : public SessionLink {
 public:
  void Send(const wire::ServerMessage& message) override { received.push_back(message); }
  void Close(const std::string& reason) override { closed = reason; }

  // The oldest message of this type that was not taken yet.
  template <typename T>
  std::optional<T> Take() {
    for (auto it = received.begin(); it != received.end(); ++it) {
      if (!std::holds_alternative<T>(*it)) continue;
      T message = std::get<T>(*it);
      received.erase(it);
      return message;
    }
    return std::nullopt;
  }

  std::deque<wire::ServerMessage> received;
  std::optional<std::string> closed;
};

// An executor as the controller sees it: keeps its operations until the test answers them, and
// watches that they come in an order that a real one could obey.
class FakeExecutorLink final : public ExecutorChannel {
 public:
  void Send(const v1::DaemonMessage& message) override {
    operations.push_back(message);
    log.push_back(message);
  }
  void Close(const std::string& reason) override { closed = reason; }

  std::deque<v1::DaemonMessage> operations;  // unanswered
  std::vector<v1::DaemonMessage> log;        // all
  std::optional<std::string> closed;
};

}  // namespace torpor::server
