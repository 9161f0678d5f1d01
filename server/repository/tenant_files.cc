#include "server/repository/tenant_files.h"

#include <spdlog/spdlog.h>

#include "base/status_macros.h"
#include "server/repository/session_files.h"

namespace torpor::server {

std::shared_ptr<const MemoryFile> TenantFiles::Of(const std::string& tenant) {
  if (const auto known = files_.find(tenant); known != files_.end()) return known->second;
  auto file = Create(tenant);
  if (!file.ok()) {
    spdlog::warn("equal blocks of tenant {} are stored once each: {}", tenant,
                 file.status().ToString());
  }
  return files_[tenant] = file.ok() ? *file : nullptr;
}

absl::StatusOr<std::shared_ptr<const MemoryFile>> TenantFiles::Create(const std::string& tenant) {
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<const MemoryFile> file,
                          SessionFiles::CreateTenantFile(image_bytes_));
  if (keeper_ != nullptr) TORPOR_RETURN_IF_ERROR(keeper_->KeepTenantFile(tenant, *file));
  return file;
}

std::shared_ptr<const MemoryFile> TenantFiles::OfEarlier(const std::string& tenant) {
  if (const auto known = files_.find(tenant); known != files_.end()) return known->second;
  auto file = keeper_ != nullptr ? keeper_->TakeTenantFile(tenant, image_bytes_) : nullptr;
  return files_[tenant] = file;
}

void TenantFiles::Drop(const std::string& tenant) {
  files_.erase(tenant);
  if (keeper_ != nullptr) keeper_->RemoveTenantFile(tenant);
}

}  // namespace torpor::server
