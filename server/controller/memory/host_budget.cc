#include "server/controller/memory/host_budget.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/settings/value_text.h"

namespace torpor::server {
namespace {

Bytes TakenBy(const ClientSession& session) {
  const SessionAllocations& memory = session.memory;
  const bool has_image = memory.device && !memory.spill.is_on_disk();
  const Bytes image = has_image ? memory.device->occupied_bytes() : 0;
  return kSessionBytes + image - std::min(image, memory.tenant_blocks.bytes()) +
         (memory.host ? memory.host->occupied_bytes() : 0);
}

}  // namespace

absl::Status HostBudget::Admit(ClientSession& session) {
  HostCharge& charge = session.memory.charge;
  const Bytes taken = TakenBy(session);
  const Bytes more = taken - std::min(taken, charge.bytes);
  if (more == 0 || (use_.used <= use_.budget && more <= use_.budget - use_.used)) {
    charge.is_refused = false;
    Count(session, taken);
    return absl::OkStatus();
  }
  ++use_.refusals;
  const std::string why =
      absl::StrCat("host memory: ", FormatBytes(more), " more are needed, and functions have ",
                   FormatBytes(use_.used), " of host_memory ", FormatBytes(use_.budget),
                   "; raise host_memory, or run fewer or smaller functions on the node");
  if (!std::exchange(charge.is_refused, true)) {
    spdlog::warn("session {} ({}, process {}) is refused {}", session.id.value, session.program,
                 session.process_id, why);
  }
  return absl::ResourceExhaustedError(why);
}

void HostBudget::Settle(ClientSession& session) { Count(session, TakenBy(session)); }

void HostBudget::Forget(ClientSession& session) { Count(session, 0); }

void HostBudget::SetTenantFiles(Bytes bytes) {
  use_.used += bytes - use_.tenant_files;
  use_.tenant_files = bytes;
}

void HostBudget::Count(ClientSession& session, Bytes bytes) {
  use_.used += bytes - session.memory.charge.bytes;  // unsigned, wraps to the difference
  session.memory.charge.bytes = bytes;
}

}  // namespace torpor::server
