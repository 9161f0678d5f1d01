#include "server/executor/session_memory/tenant_memories.h"

#include <utility>

#include "base/status_macros.h"
#include "server/executor/session_memory/descriptor_client.h"
#include "server/settings/node_addresses.h"

namespace torpor::executor {

absl::StatusOr<std::unique_ptr<TenantMemories>> TenantMemories::Reserve(const Device& device,
                                                                        Bytes bytes,
                                                                        bool wants_huge_pages) {
  TORPOR_ASSIGN_OR_RETURN(
      std::unique_ptr<AddressWindow> window,
      wants_huge_pages ? AddressWindow::ReserveForHugePages(bytes) : AddressWindow::Reserve(bytes));
  return std::unique_ptr<TenantMemories>(new TenantMemories(device, std::move(window)));
}

absl::StatusOr<std::shared_ptr<TenantMemory>> TenantMemories::Open(
    const std::string& descriptor_socket, const SessionIdentity& identity) {
  MutexLock lock(&mutex_);
  std::weak_ptr<TenantMemory>& known = tenants_[identity.tenant];
  if (std::shared_ptr<TenantMemory> memory = known.lock()) return memory;
  absl::StatusOr<UniqueFd> file = FetchDescriptor(descriptor_socket, identity.id, identity.key,
                                                  wire::SharedMemory::kTenantFile);
  if (absl::IsNotFound(file.status())) return nullptr;
  TORPOR_RETURN_IF_ERROR(file.status());
  TORPOR_ASSIGN_OR_RETURN(SharedMapping mapping,
                          SharedMapping::InParts(*std::move(file), *window_, {0, window_->bytes()},
                                                 server::kTenantSegmentBytes));
  const auto memory = std::make_shared<TenantMemory>(device_, std::move(mapping));
  known = memory;
  return memory;
}

}  // namespace torpor::executor
