#include "client_shim/core/transport/executor_link.h"

#include <utility>

namespace torpor::shim {

bool ExecutorLink::HasWaiter() const {
  for (const PendingReply& reply : pending_)
    if (reply.waiter) return true;
  return false;
}

void ExecutorLink::Read(Lock& lock, bool waits) {
  is_being_read_ = true;
  lock.unlock();
  const FrameStream::Arrival arrival = stream_->Await(waits);
  lock.lock();
  is_being_read_ = false;
  stream_->Take(arrival);
}

bool ExecutorLink::HandOverReading() {
  if (is_being_read_) return false;
  for (const PendingReply& reply : pending_) {
    if (!reply.waiter) continue;
    reply.waiter->changed.notify_one();
    return false;
  }
  return !pending_.empty() || stream_->unsent_bytes() > 0;
}

bool ExecutorLink::Next(wire::Reply& reply, PendingReply& answered) {
  std::span<const std::uint8_t> payload;
  if (!stream_->Next(payload)) return false;
  reply = {};
  wire::Reader reader(payload);
  reader(reply);
  if (reader.done() && reply.call_id == static_cast<std::uint32_t>(wire::ProtocolCall::kOutput)) {
    answered = {PendingReply::Kind::kOutput, reply.call_id, nullptr};
    return true;
  }
  if (!reader.done() || pending_.empty() || pending_.front().call_id != reply.call_id) {
    stream_->End("the executor sent a malformed reply");
    return false;
  }
  answered = pending_.front();
  pending_.pop_front();
  return true;
}

bool ExecutorLink::Break(cudaError_t error, const std::string& why) {
  stream_->End(why);
  bool tells_program = false;
  for (const PendingReply& reply : pending_) {
    if (!reply.waiter) continue;
    tells_program = tells_program || reply.waiter->tells_program;
    reply.waiter->error = error;
    reply.waiter->done = true;
    reply.waiter->changed.notify_one();
  }
  pending_.clear();
  return tells_program;
}

std::deque<PendingReply> ExecutorLink::Suspend(const std::string& why) {
  stream_->End(why);
  for (const PendingReply& reply : pending_)
    if (reply.waiter) reply.waiter->link = nullptr;
  return std::exchange(pending_, {});
}

FrameStream::Polled ExecutorLink::EventsToWatch() {
  const bool has_reading_for_service = unsent_bytes() > 0 || !pending_.empty();
  return stream_->Prepare(!is_being_read_ && !HasWaiter() && has_reading_for_service);
}

}  // namespace torpor::shim
