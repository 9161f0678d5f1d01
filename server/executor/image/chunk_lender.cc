#include "server/executor/image/chunk_lender.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

bool HasEnded(const UniqueFd& process) {
  pollfd polled = {process.get(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN) != 0;
}

absl::Status CheckCount(const PoolRequest& request) {
  if (request.count >= 1 && request.count <= kMaxTaken) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a request for ", request.count, " chunks at once"));
}

}  // namespace

absl::Status ChunkLender::Take(int connection, const PoolRequest& request, PoolReply& reply) {
  TORPOR_RETURN_IF_ERROR(CheckCount(request));
  if (request.needed < request.count) {
    return absl::InvalidArgumentError("a request for more chunks than are needed");
  }
  TORPOR_RETURN_IF_ERROR(Meet(connection));
  TakeBackFromDeparted();
  // torpord may have seen the end of a process before its connection has ended here.
  if (ledger_.free_chunks() < request.needed) TakeBackFromAllEnded();
  if (ledger_.free_chunks() < request.needed) {
    return absl::ResourceExhaustedError("too few chunks are free");
  }
  const ChunkLedger::Taken taken =
      ledger_.Take(holders_.at(connection).id, request.domain, request.count);
  if (!taken.to_clear().empty()) {
    if (const absl::Status cleared = clear_(taken.to_clear()); !cleared.ok()) {
      ledger_.Undo(taken);
      return absl::InternalError(absl::StrCat("chunks stay uncleared: ", cleared.ToString()));
    }
  }
  std::ranges::copy(taken.chunks, reply.numbers.begin());
  return absl::OkStatus();
}

absl::Status ChunkLender::Return(int connection, const PoolRequest& request) {
  TORPOR_RETURN_IF_ERROR(CheckCount(request));
  const auto holder = holders_.find(connection);
  const std::span<const Number> chunks = std::span(request.numbers).first(request.count);
  if (holder != holders_.end() && ledger_.Return(holder->second.id, chunks)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("a return of chunks that the executor does not hold");
}

void ChunkLender::OnClosing(int connection) {
  const auto holder = holders_.find(connection);
  if (holder == holders_.end()) return;
  if (ledger_.Holds(holder->second.id)) departed_.push_back(std::move(holder->second));
  holders_.erase(holder);
}

std::size_t ChunkLender::free_chunks() {
  TakeBackFromDeparted();
  return ledger_.free_chunks();
}

absl::Status ChunkLender::Meet(int connection) {
  if (holders_.contains(connection)) return absl::OkStatus();
  TORPOR_ASSIGN_OR_RETURN(UniqueFd process, watch_(connection));
  holders_.emplace(connection, Holder{++last_id_, std::move(process)});
  return absl::OkStatus();
}

void ChunkLender::TakeBackFromDeparted() {
  std::erase_if(departed_, [this](const Holder& holder) {
    if (!HasEnded(holder.process)) return false;
    ledger_.ReturnAll(holder.id);
    return true;
  });
}

void ChunkLender::TakeBackFromAllEnded() {
  TakeBackFromDeparted();
  for (const auto& [connection, holder] : holders_) {
    if (HasEnded(holder.process)) ledger_.ReturnAll(holder.id);
  }
}

}  // namespace torpor::executor
