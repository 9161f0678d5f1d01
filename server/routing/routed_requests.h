#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "proto/torpor/v1/router.pb.h"
#include "server/broker/request_broker.h"
#include "server/routing/router_link.h"

namespace torpor::server {

// The requests of one stream from a router, in torpord: passes them to the broker and its answers
// back. One call at a time; the broker's callbacks may come meanwhile.
class RoutedRequests {
 public:
  // `broker` must outlive all callbacks. While `is_paused`, the broker gets no new requests, and
  // its refusals are not passed on: such requests stay with the router, for the next torpord.
  RoutedRequests(RequestBroker& broker, std::shared_ptr<RouterLink> link,
                 std::shared_ptr<const std::atomic<bool>> is_paused)
      : broker_(broker), link_(std::move(link)), is_paused_(std::move(is_paused)) {}

  // What the router has kept from an earlier stream. Requests that run do so under leases of an
  // earlier torpord, and go on under this one's (RequestBroker::Demand::ran_on).
  void OnMessage(const v1::RouterMessage::Holding& holding);
  void OnMessage(const v1::Demand& demand);
  void OnMessage(const v1::RouterMessage::Confirm& confirm);
  void OnMessage(const v1::RouterMessage::AskAgain& again);
  void OnMessage(const v1::RouterMessage::Release& release);

  // The router has gone, and its clients with it: releases all requests. Returns how many.
  std::size_t ReleaseAll();

 private:
  // `lease`: of the grant that the router knows, if any.
  void Acquire(const v1::Demand& demand, LeaseId lease);

  // What the broker has said of a request.
  struct Answered {
    LeaseId lease;  // of the newest grant; on the controller's thread
    std::atomic<bool> is_refused = false;
  };
  struct Routed {
    RequestId request;
    std::shared_ptr<Answered> answered;
  };

  RequestBroker& broker_;
  const std::shared_ptr<RouterLink> link_;
  const std::shared_ptr<const std::atomic<bool>> is_paused_;
  // By the router's id. A running request that is not there was refused by an earlier torpord.
  std::unordered_map<std::uint64_t, Routed> requests_;
};

}  // namespace torpor::server
