#include "server/executor/runtime/session_textures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxObjects = 1u << 20;
// Sizes, counts and pairs of both are below: translating such a value would change plain numbers.
constexpr std::uint64_t kFirstUnmistakable = std::uint64_t{1} << 32;
// Drivers that give small values count up; a value beyond the next few belongs to another object.
constexpr std::size_t kMaxTries = 256;

absl::Status UnknownObject(std::uint64_t id) {
  return absl::NotFoundError(absl::StrCat("the session has no texture or surface object ", id));
}

}  // namespace

SessionTextures::~SessionTextures() {
  for (const auto& [id, object] : objects_) {
    if (!object.status.ok()) continue;
    if (object.texture) {
      device_.discarded().AddTexture(object.value);
    } else {
      device_.discarded().AddSurface(object.value);
    }
  }
}

bool SessionTextures::reads_memory() const {
  return std::ranges::any_of(objects_,
                             [](const auto& object) { return object.second.memory.bytes > 0; });
}

bool SessionTextures::HasRoom() const { return objects_.size() < kMaxObjects; }

CUresult SessionTextures::Make(const Object& object, std::uint64_t& value) const {
  const CudaDriver& driver = device_.driver();
  CUtexObject made = 0;
  const CUresult result = object.texture
                              ? driver.TexObjectCreate(&made, &object.resource, &*object.texture,
                                                       object.view ? &*object.view : nullptr)
                              : driver.SurfObjectCreate(&made, &object.resource);
  value = made;
  return result;
}

void SessionTextures::Destroy(const Object& object, std::uint64_t value) const {
  if (object.texture) {
    device_.driver().TexObjectDestroy(value);
  } else {
    device_.driver().SurfObjectDestroy(value);
  }
}

bool SessionTextures::MakeAs(std::uint64_t value, const Object& object) const {
  // A discarded object may have the value.
  return TryMakingAs(value, object) ||
         (device_.discarded().DestroyAll() > 0 && TryMakingAs(value, object));
}

bool SessionTextures::TryMakingAs(std::uint64_t value, const Object& object) const {
  std::vector<std::uint64_t> superfluous;
  bool is_made = false;
  for (std::size_t i = 0; i < kMaxTries && !is_made; ++i) {
    std::uint64_t made = 0;
    if (Make(object, made) != CUDA_SUCCESS) break;
    is_made = made == value;
    // Kept until the end, lest the driver gives the same value again.
    if (!is_made) superfluous.push_back(made);
  }
  for (const std::uint64_t other : superfluous) Destroy(object, other);
  return is_made;
}

void SessionTextures::Add(std::uint64_t id, Object object) {
  if (!HasRoom() || objects_.contains(id)) return;
  object.status = device_.Status(Make(object, object.value),
                                 object.texture ? "cuTexObjectCreate" : "cuSurfObjectCreate");
  objects_.emplace(id, std::move(object));
}

void SessionTextures::AddTexture(std::uint64_t id, const CUDA_RESOURCE_DESC& resource,
                                 const CUDA_TEXTURE_DESC& texture,
                                 const CUDA_RESOURCE_VIEW_DESC* view, const Memory& memory) {
  Object object;
  object.memory = memory;
  object.resource = resource;
  object.texture = texture;
  if (view != nullptr) object.view = *view;
  Add(id, std::move(object));
}

void SessionTextures::AddSurface(std::uint64_t id, const CUDA_RESOURCE_DESC& resource) {
  Object object;
  object.resource = resource;
  Add(id, std::move(object));
}

void SessionTextures::AddBroken(std::uint64_t id, absl::Status why) {
  if (HasRoom() && !objects_.contains(id)) objects_[id].status = std::move(why);
}

absl::Status SessionTextures::Rebind(const std::function<CUdeviceptr(const Memory&)>& resolve) {
  absl::Status status;
  for (auto& [id, object] : objects_) {
    if (object.memory.bytes == 0 || !object.status.ok()) continue;
    CUdeviceptr& bound = object.resource.resType == CU_RESOURCE_TYPE_LINEAR
                             ? object.resource.res.linear.devPtr
                             : object.resource.res.pitch2D.devPtr;
    const CUdeviceptr now = resolve(object.memory);
    if (now == 0 || now == bound) continue;
    bound = now;
    Destroy(object, object.value);
    if (MakeAs(object.value, object)) continue;
    object.status = absl::FailedPreconditionError(
        absl::StrCat("the texture of memory that is known as ", object.value,
                     " gets another value now that the memory has moved; set address_mode: map"));
    status.Update(object.status);
  }
  return status;
}

absl::Status SessionTextures::Remove(std::uint64_t id) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  if (found->second.status.ok()) Destroy(found->second, found->second.value);
  const auto here = here_.find(found->second.known_as);
  if (here != here_.end()) {
    moved_ -= here->second != here->first ? 1 : 0;
    here_.erase(here);
  }
  objects_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> SessionTextures::ValueOf(std::uint64_t id) const {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  if (!found->second.status.ok()) return found->second.status;
  return found->second.value;
}

absl::Status SessionTextures::Publish(std::uint64_t id, std::uint64_t known_as) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  Object& object = found->second;
  if (object.known_as != 0) return absl::AlreadyExistsError("the object is published");
  if (known_as < kFirstUnmistakable && object.value != known_as) {
    // An object that cannot be made again is out of use, and stays as before.
    if (!object.status.ok()) return absl::OkStatus();
    if (!MakeAs(known_as, object)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "a texture or surface object is ", known_as, " on the GPU where it was made, ",
          object.value, " on this one: the program cannot move here"));
    }
    Destroy(object, std::exchange(object.value, known_as));
  }
  // A broken object has no value here: a kernel that uses the published value fails.
  const std::uint64_t here = object.status.ok() ? object.value : 0;
  const auto [known, is_new] = here_.emplace(known_as, here);
  if (!is_new) {
    // Some drivers number textures and surfaces separately.
    if (known->second == here && here == known_as) return absl::OkStatus();
    return absl::AlreadyExistsError("a texture and a surface of one value differ on this GPU");
  }
  object.known_as = known_as;
  moved_ += here != known_as ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace torpor::executor
