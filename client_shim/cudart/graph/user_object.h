#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace torpor::shim {

// An object of the program that graphs keep alive: `destroy` is called with the last reference.
class UserObject {
 public:
  UserObject(void* object, cudaHostFn_t destroy, unsigned references);
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;

  // Null if the handle is no live object's.
  static UserObject* Find(cudaUserObject_t handle);
  cudaUserObject_t handle() { return reinterpret_cast<cudaUserObject_t>(this); }

  void Retain(unsigned count);
  // False, and nothing is released, if there are not so many references. The last one deletes
  // this.
  bool Release(unsigned count);

 private:
  ~UserObject();

  void* const object_;
  const cudaHostFn_t destroy_;
  std::mutex mutex_;
  unsigned references_;
};

// References that a graph or what was instantiated from it holds.
class UserReferences {
 public:
  UserReferences() = default;
  ~UserReferences();
  UserReferences(const UserReferences&) = delete;
  UserReferences& operator=(const UserReferences&) = delete;

  // References of the object that become this's.
  void Take(UserObject& object, unsigned count) { counts_[&object] += count; }
  // False: there are not so many.
  bool Release(UserObject& object, unsigned count);
  // One reference of its own of each of the other's objects.
  void Copy(const UserReferences& other);

 private:
  std::map<UserObject*, unsigned> counts_;
};

}  // namespace torpor::shim
