#include "server/broker/broker_messages.h"

#include <algorithm>
#include <string>

#include "server/broker/retry_after.h"

namespace torpor::server {
namespace {

std::int64_t ToNanoseconds(TimePoint time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

TimePoint ToTime(std::int64_t nanoseconds) {
  return TimePoint(std::chrono::nanoseconds(nanoseconds));
}

}  // namespace

// The structured bindings name every field, so that a new one does not go without a message.

v1::Demand ToMessage(std::uint64_t request_id, const RequestBroker::Demand& demand) {
  const auto& [function, id, give_up, arrival, ran_on, granted] = demand;
  v1::Demand message;
  message.set_request_id(request_id);
  message.set_function(function);
  message.set_caller_id(id);
  message.set_give_up_ns(ToNanoseconds(give_up));
  if (arrival) message.set_arrival_ns(ToNanoseconds(*arrival));
  message.set_ran_on(ran_on);
  if (granted) message.set_granted_ns(ToNanoseconds(*granted));
  return message;
}

RequestBroker::Demand FromMessage(const v1::Demand& message) {
  RequestBroker::Demand demand{.function = message.function(),
                               .id = message.caller_id(),
                               .give_up = ToTime(message.give_up_ns()),
                               .ran_on = message.ran_on()};
  if (message.arrival_ns() > 0) demand.arrival = ToTime(message.arrival_ns());
  if (message.granted_ns() > 0) demand.granted = ToTime(message.granted_ns());
  return demand;
}

v1::TorpordMessage::Grant ToMessage(std::uint64_t request_id, const RequestGrant& grant) {
  const auto& [request, lease, instance, upstream, has_siblings, gpu, source, queue, swap] = grant;
  v1::TorpordMessage::Grant message;
  message.set_request_id(request_id);
  message.set_lease_id(lease.value);
  message.set_gpu(gpu.value);
  message.set_source(static_cast<std::uint32_t>(source));
  message.set_queue_ns(std::chrono::nanoseconds(queue).count());
  message.set_swap_ns(std::chrono::nanoseconds(swap).count());
  message.set_instance(instance);
  message.set_upstream(upstream);
  message.set_has_siblings(has_siblings);
  return message;
}

RequestGrant FromMessage(const v1::TorpordMessage::Grant& message) {
  constexpr auto kLast = static_cast<std::uint32_t>(SwapSource::kPeer);
  return {.request = RequestId{message.request_id()},
          .lease = LeaseId{message.lease_id()},
          .instance = message.instance(),
          .upstream = message.upstream(),
          .has_siblings = message.has_siblings(),
          .gpu = GpuIndex{message.gpu()},
          .source = static_cast<SwapSource>(std::min(message.source(), kLast)),
          .queue = std::chrono::nanoseconds(message.queue_ns()),
          .swap = std::chrono::nanoseconds(message.swap_ns())};
}

v1::TorpordMessage::Refusal ToMessage(std::uint64_t request_id, const absl::Status& refusal) {
  v1::TorpordMessage::Refusal message;
  message.set_request_id(request_id);
  message.set_code(refusal.raw_code());
  message.set_message(std::string(refusal.message()));
  message.set_retry_after_s(static_cast<std::uint32_t>(RetryAfterSeconds(refusal).value_or(0)));
  return message;
}

absl::Status FromMessage(const v1::TorpordMessage::Refusal& message) {
  // Never OK: there is no grant.
  const auto code = message.code() == 0 ? absl::StatusCode::kUnknown
                                        : static_cast<absl::StatusCode>(message.code());
  absl::Status status(code, message.message());
  if (message.retry_after_s() == 0) return status;
  return WithRetryAfter(status, std::chrono::seconds(message.retry_after_s()));
}

v1::RouterMessage::AskAgain ToMessage(std::uint64_t request_id, LeaseId lease,
                                      const RequestBroker::Demand& demand) {
  v1::RouterMessage::AskAgain message;
  *message.mutable_demand() = ToMessage(request_id, demand);
  message.set_lease_id(lease.value);
  return message;
}

v1::RouterMessage::Release ToMessage(std::uint64_t request_id, LeaseId lease,
                                     scheduler::Ending ending) {
  v1::RouterMessage::Release message;
  message.set_request_id(request_id);
  message.set_lease_id(lease.value);
  message.set_ending(static_cast<std::uint32_t>(ending));
  return message;
}

scheduler::Ending EndingOf(const v1::RouterMessage::Release& message) {
  constexpr auto kLast = static_cast<std::uint32_t>(scheduler::Ending::kLost);
  return message.ending() > kLast ? scheduler::Ending::kCancelled
                                  : static_cast<scheduler::Ending>(message.ending());
}

}  // namespace torpor::server
