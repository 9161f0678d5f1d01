#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The texture and surface objects of a session on this GPU. The program knows an object by the
// driver's value on the GPU where the object was first made. If this GPU's driver gives another
// value, kernel parameters are translated, provided that no plain number can be mistaken for the
// value; else the object is made again until the driver gives that value. Not thread-safe; call
// with the device current.
class SessionTextures {
 public:
  explicit SessionTextures(const Device& device) : device_(device) {}
  ~SessionTextures();
  SessionTextures(const SessionTextures&) = delete;
  SessionTextures& operator=(const SessionTextures&) = delete;

  // The client's memory that a texture reads.
  struct Memory {
    std::uint64_t address = 0;
    Bytes bytes = 0;  // 0: the texture reads an array
  };

  // Makes the object. ValueOf tells of a failure: a program may have freed the memory under an
  // object that is out of use.
  void AddTexture(std::uint64_t id, const CUDA_RESOURCE_DESC& resource,
                  const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view,
                  const Memory& memory);
  void AddSurface(std::uint64_t id, const CUDA_RESOURCE_DESC& resource);
  // Adds an object without a resource on this GPU; ValueOf gives `why`.
  void AddBroken(std::uint64_t id, absl::Status why);
  // Makes textures again, with their present values, whose memory has moved since. `resolve` gives
  // the present address, or 0 for memory that is gone: such a texture stays as before.
  // FailedPrecondition if the driver gives a texture another value; the texture is broken then.
  absl::Status Rebind(const std::function<CUdeviceptr(const Memory&)>& resolve);
  // No work uses the object any more. NotFound if there is no such object.
  absl::Status Remove(std::uint64_t id);

  // Returns the driver's value, or why the object could not be made.
  absl::StatusOr<std::uint64_t> ValueOf(std::uint64_t id) const;

  // Tells by which value the program knows the object. AlreadyExists: the program knows another
  // object by this value. FailedPrecondition: the value can neither be translated nor be had from
  // this GPU's driver.
  absl::Status Publish(std::uint64_t id, std::uint64_t known_as);
  // Whether a texture reads memory rather than an array.
  bool reads_memory() const;
  bool empty() const { return objects_.empty(); }
  // Whether a published value differs from the object's value on this GPU.
  bool has_moved() const { return moved_ != 0; }
  // Returns the object's value on this GPU; returns any other number unchanged.
  std::uint64_t Translate(std::uint64_t known_as) const {
    const auto found = here_.find(known_as);
    return found == here_.end() ? known_as : found->second;
  }

 private:
  struct Object {
    absl::Status status;
    CUDA_RESOURCE_DESC resource{};
    std::optional<CUDA_TEXTURE_DESC> texture;  // a surface has none
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
    Memory memory;
    std::uint64_t value = 0;
    std::uint64_t known_as = 0;  // 0: not published
  };

  bool HasRoom() const;
  void Add(std::uint64_t id, Object object);
  CUresult Make(const Object& object, std::uint64_t& value) const;
  void Destroy(const Object& object, std::uint64_t value) const;
  // Makes a driver's object of that value. False if the driver gives other values only.
  bool MakeAs(std::uint64_t value, const Object& object) const;
  bool TryMakingAs(std::uint64_t value, const Object& object) const;

  const Device& device_;
  std::map<std::uint64_t, Object> objects_;
  std::map<std::uint64_t, std::uint64_t> here_;  // by published value
  std::size_t moved_ = 0;                        // published values that differ here
};

}  // namespace torpor::executor
