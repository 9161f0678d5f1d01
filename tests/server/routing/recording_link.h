#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/routing/router_link.h"
#include "server/routing/torpord_link.h"

namespace torpor::server {

// The router's end of a stream that keeps what was sent.
class RecordingTorpordLink final : public TorpordLink {
 public:
  void Send(v1::RouterMessage message) override { sent.push_back(std::move(message)); }

  std::vector<v1::RouterMessage> sent;
};

// torpord's end of a stream that keeps what was sent.
class RecordingRouterLink final : public RouterLink {
 public:
  void Send(v1::TorpordMessage message) override { sent.push_back(std::move(message)); }
  void Refuse(const std::string&) override {}
  void Cut() override {}

  std::vector<v1::TorpordMessage> sent;
};

}  // namespace torpor::server
