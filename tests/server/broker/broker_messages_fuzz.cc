#include <cstdlib>

#include "server/broker/broker_messages.h"
#include "server/broker/function_messages.h"

namespace torpor::server {
namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

void CheckDemand(const v1::Demand& message) {
  const RequestBroker::Demand demand = FromMessage(message);
  const v1::Demand written = ToMessage(message.request_id(), demand);
  Check(written.function() == message.function() && written.caller_id() == message.caller_id());
  Check(FromMessage(written).give_up == demand.give_up);
  Check(FromMessage(written).arrival == demand.arrival);
  Check(written.ran_on() == message.ran_on());
  if (message.granted_ns() > 0) Check(written.granted_ns() == message.granted_ns());
}

// What torpord reads from a router.
void CheckBatch(const v1::RouterBatch& batch) {
  for (const v1::RouterMessage& message : batch.messages()) {
    if (message.has_acquire()) CheckDemand(message.acquire());
    if (message.has_ask_again()) CheckDemand(message.ask_again().demand());
    for (const v1::Demand& demand : message.holding().waiting()) CheckDemand(demand);
    for (const auto& running : message.holding().running()) CheckDemand(running.demand());
    Check(EndingOf(message.release()) <= scheduler::Ending::kLost);
  }
}

// What a router reads from torpord.
void CheckBatch(const v1::TorpordBatch& batch) {
  for (const v1::TorpordMessage& message : batch.messages()) {
    const RequestGrant grant = FromMessage(message.grant());
    Check(NameOf(grant.source) != nullptr);
    Check(FromMessage(ToMessage(grant.request.value, grant)).upstream == grant.upstream);
    Check(!FromMessage(message.refusal()).ok());
    for (const auto& [name, function] : FromMessage(message.functions())) {
      Check(name == function.name && !InstancesOf(function).empty());
    }
  }
}

}  // namespace
}  // namespace torpor::server

// Whatever bytes are a batch, every message in it has a meaning.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  torpor::v1::RouterBatch from_router;
  if (from_router.ParseFromArray(data, static_cast<int>(size))) {
    torpor::server::CheckBatch(from_router);
  }
  torpor::v1::TorpordBatch from_torpord;
  if (from_torpord.ParseFromArray(data, static_cast<int>(size))) {
    torpor::server::CheckBatch(from_torpord);
  }
  return 0;
}
