#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/torpor/v1/router.pb.h"
#include "server/routing/stream_broker.h"
#include "server/routing/stream_inquiry.h"

namespace torpor::server {

// Keeps a router's process connected with torpord, one stream after another: tries again 20 to 200
// ms after a stream has ended, for as long as the socket's folder is there. Runs on threads of its
// own.
class RoutingClient {
 public:
  // Functions are called on the client's threads.
  struct Parts {
    StreamBroker* broker = nullptr;
    StreamInquiry* inquiry = nullptr;
    v1::RouterMessage::Hello hello;
    std::function<void(const v1::TorpordMessage::Welcome&)> on_welcome;
    std::function<void(const v1::TorpordMessage::Functions&)> on_functions;
    std::function<void(bool is_attached)> on_attached;
    // Whether the router's own loop turns; asked twice a second.
    std::function<bool()> is_turning;
    // torpord does not want this router, or no torpord can come any more: the process is to end.
    // The client tries no more.
    std::function<void(const std::string& why)> on_unwanted;
  };

  // Starts to connect. What `parts` names must outlive the client.
  static std::unique_ptr<RoutingClient> Start(const std::string& socket_path, Parts parts);

  // Ends the stream after what was sent.
  virtual ~RoutingClient() = default;
};

}  // namespace torpor::server
