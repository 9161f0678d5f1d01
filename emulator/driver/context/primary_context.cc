#include "emulator/driver/context/primary_context.h"

#include <utility>

namespace torpor::emulator {

DriverResult<std::shared_ptr<Context>> PrimaryContext::Retain(CUcontext& handle) {
  std::lock_guard lock(mutex_);
  if (handle_ == nullptr) {
    auto created = Context::Create(device_, flags_, true);
    if (!created.ok()) return created;
    context_ = std::move(created).value();
    handle_ = registry_.AddContext(context_);
  }
  ++references_;
  handle = handle_;
  return context_;
}

CUresult PrimaryContext::Release() {
  CUcontext ended = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (references_ == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--references_ != 0) return CUDA_SUCCESS;
    // A Retain from now on makes another context.
    ended = std::exchange(handle_, nullptr);
    context_ = nullptr;
  }
  if (ended != nullptr) registry_.RemoveContext(ended);
  return CUDA_SUCCESS;
}

void PrimaryContext::Reset() {
  CUcontext ended = nullptr;
  {
    std::lock_guard lock(mutex_);
    ended = std::exchange(handle_, nullptr);
    context_ = nullptr;
    references_ = 0;
  }
  if (ended != nullptr) registry_.RemoveContext(ended);
}

void PrimaryContext::SetFlags(unsigned flags) {
  std::lock_guard lock(mutex_);
  flags_ = flags;
  if (context_ != nullptr) context_->set_flags(flags);
}

unsigned PrimaryContext::flags() const {
  std::lock_guard lock(mutex_);
  return flags_;
}

CUcontext PrimaryContext::handle() const {
  std::lock_guard lock(mutex_);
  return handle_;
}

}  // namespace torpor::emulator
