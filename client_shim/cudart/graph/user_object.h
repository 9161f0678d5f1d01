#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace torpor::shim {

// An object of the program kept alive by graphs. The last Release calls `destroy` and deletes the
// UserObject. Thread-safe.
class UserObject {
 public:
  UserObject(void* object, cudaHostFn_t destroy, unsigned references);
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;

  // Returns null if no live object has the handle.
  static UserObject* Find(cudaUserObject_t handle);
  cudaUserObject_t handle() { return reinterpret_cast<cudaUserObject_t>(this); }

  void Retain(unsigned count);
  // Returns false, releasing nothing, if fewer than `count` references exist. Releasing the last
  // reference deletes the object.
  bool Release(unsigned count);

 private:
  ~UserObject();

  void* const object_;
  const cudaHostFn_t destroy_;
  std::mutex mutex_;
  unsigned references_;
};

// The references held by a graph or an instantiated graph. Not thread-safe.
class UserReferences {
 public:
  UserReferences() = default;
  ~UserReferences();
  UserReferences(const UserReferences&) = delete;
  UserReferences& operator=(const UserReferences&) = delete;

  // Takes over `count` references from the caller.
  void Take(UserObject& object, unsigned count) { counts_[&object] += count; }
  // Returns false, releasing nothing, if fewer than `count` references are held.
  bool Release(UserObject& object, unsigned count);
  // Adds a new reference to each object that `other` holds.
  void Copy(const UserReferences& other);

 private:
  std::map<UserObject*, unsigned> counts_;
};

}  // namespace torpor::shim
