#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/units.h"
#include "server/executor/gpu/address_window.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/tenant_memory.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// The tenants' files of this process, each mapped once: places of different tenants lie apart.
// Thread-safe.
class TenantMemories {
 public:
  // `bytes`: of each tenant's file. `device` must outlive the object, which outlives all sessions.
  static absl::StatusOr<std::unique_ptr<TenantMemories>> Reserve(const Device& device, Bytes bytes,
                                                                 bool wants_huge_pages = false);

  // Returns the memory of the session's tenant, fetched from torpord for the tenant's first
  // session. Null if torpord has no such file. Blocks.
  absl::StatusOr<std::shared_ptr<TenantMemory>> Open(const std::string& descriptor_socket,
                                                     const SessionIdentity& identity);

 private:
  TenantMemories(const Device& device, std::unique_ptr<AddressWindow> window)
      : device_(device), window_(std::move(window)) {}

  const Device& device_;
  const std::unique_ptr<AddressWindow> window_;
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<TenantMemory>> tenants_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
