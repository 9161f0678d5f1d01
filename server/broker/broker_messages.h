#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "proto/torpor/v1/router.pb.h"
#include "server/broker/request_broker.h"

// The records of RequestBroker as messages of proto/torpor/v1/router.proto.
namespace torpor::server {

// `request_id` is the router's.
v1::Demand ToMessage(std::uint64_t request_id, const RequestBroker::Demand& demand);
RequestBroker::Demand FromMessage(const v1::Demand& message);

v1::TorpordMessage::Grant ToMessage(std::uint64_t request_id, const RequestGrant& grant);
// The grant's request is the router's.
RequestGrant FromMessage(const v1::TorpordMessage::Grant& message);

v1::TorpordMessage::Refusal ToMessage(std::uint64_t request_id, const absl::Status& refusal);
absl::Status FromMessage(const v1::TorpordMessage::Refusal& message);

// `lease` is given back.
v1::RouterMessage::AskAgain ToMessage(std::uint64_t request_id, LeaseId lease,
                                      const RequestBroker::Demand& demand);

v1::RouterMessage::Release ToMessage(std::uint64_t request_id, LeaseId lease,
                                     scheduler::Ending ending);
// kCancelled for unknown endings.
scheduler::Ending EndingOf(const v1::RouterMessage::Release& message);

}  // namespace torpor::server
