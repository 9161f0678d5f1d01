#include "client_shim/cudart/graph/user_object.h"

#include "client_shim/cudart/graph/live_handles.h"

namespace torpor::shim {
namespace {

LiveHandles& TheUserObjects() {
  static auto* const objects = new LiveHandles();
  return *objects;
}

}  // namespace

UserObject::UserObject(void* object, cudaHostFn_t destroy, unsigned references)
    : object_(object), destroy_(destroy), references_(references) {
  TheUserObjects().Add(this);
}

UserObject::~UserObject() { TheUserObjects().Remove(this); }

UserObject* UserObject::Find(cudaUserObject_t handle) {
  return TheUserObjects().Contains(handle) ? reinterpret_cast<UserObject*>(handle) : nullptr;
}

void UserObject::Retain(unsigned count) {
  std::lock_guard lock(mutex_);
  references_ += count;
}

bool UserObject::Release(unsigned count) {
  {
    std::lock_guard lock(mutex_);
    if (count > references_) return false;
    references_ -= count;
    if (references_ > 0) return true;
  }
  destroy_(object_);
  delete this;
  return true;
}

UserReferences::~UserReferences() {
  for (const auto& [object, count] : counts_) object->Release(count);
}

bool UserReferences::Release(UserObject& object, unsigned count) {
  const auto found = counts_.find(&object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  return object.Release(count);
}

void UserReferences::Copy(const UserReferences& other) {
  for (const auto& [object, count] : other.counts_) {
    object->Retain(1);
    Take(*object, 1);
  }
}

}  // namespace torpor::shim
