#include "emulator/node/node_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/sha256.h"

namespace torpor::emulator {
namespace {

constexpr char kMagic[16] = "torpor-node-v2";

// The content of the file. `magic` includes the version of the layout.
struct Layout {
  char magic[sizeof(kMagic)];
  Sha256Digest identity;
  SharedNodeState state;
};

Failure<NodeError> Fail(NodeError code, const std::string& path, const std::string& why) {
  return {code,
          "the emulated node's file '" + path + "', which TORPOR_EMULATOR_NODE names, " + why};
}

Failure<NodeError> SystemFailure(const std::string& path, const std::string& what) {
  return Fail(NodeError::kUnreadable, path, what + ": " + std::strerror(errno));
}

// Points in time count from the machine's start, so a file from before the start is useless.
Sha256Digest IdentityOf(const std::string& description) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const std::string whole = boot + "\n" + description;
  return Sha256(whole.data(), whole.size());
}

void* MapShared(int fd) {
  void* const mapping = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

// Makes zeros a node.
void Initialize(SharedNodeState& state) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&state.memory.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  state.began_ns = SteadyClock().Now().time_since_epoch().count();
}

// Creates `path` atomically. Returns true if the file exists afterwards, whichever process created
// it.
bool Create(const std::string& path, const Sha256Digest& identity) {
  std::string draft = path + ".XXXXXX";  // a process's number may be another's in another container
  const UniqueFd file(mkostemp(draft.data(), O_CLOEXEC));
  if (!file) return false;
  bool is_created = false;
  void* mapping = nullptr;
  if (ftruncate(file.get(), sizeof(Layout)) == 0 && (mapping = MapShared(file.get())) != nullptr) {
    auto* const layout = static_cast<Layout*>(mapping);
    std::memcpy(layout->magic, kMagic, sizeof(kMagic));
    layout->identity = identity;
    Initialize(layout->state);
    munmap(mapping, sizeof(Layout));
    is_created = link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  }
  const int why = errno;
  unlink(draft.c_str());
  errno = why;
  return is_created;
}

// Open file description locks: they belong to `file_`, which the kernel closes with the process.
struct flock LockOf(unsigned slot, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return lock;
}

}  // namespace

NodeFile::NodeFile(UniqueFd file, void* mapping)
    : file_(std::move(file)), mapping_(mapping), state_(&static_cast<Layout*>(mapping)->state) {}

NodeFile::~NodeFile() { munmap(mapping_, sizeof(Layout)); }

NodeResult<std::unique_ptr<NodeFile>> NodeFile::Observe(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return SystemFailure(path, "cannot be opened");
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return SystemFailure(path, "cannot be read");
  char magic[sizeof(kMagic)] = {};
  if (status.st_size != sizeof(Layout) ||
      pread(file.get(), magic, sizeof(magic), 0) != ssize_t{sizeof(magic)} ||
      std::memcmp(magic, kMagic, sizeof(magic)) != 0) {
    return Fail(NodeError::kInvalid, path, "is none of this version; remove it");
  }
  void* const mapping = MapShared(file.get());
  if (mapping == nullptr) return SystemFailure(path, "cannot be mapped");
  return std::unique_ptr<NodeFile>(new NodeFile(std::move(file), mapping));
}

NodeResult<std::unique_ptr<NodeFile>> NodeFile::Join(const std::string& path,
                                                     const std::string& description) {
  const Sha256Digest identity = IdentityOf(description);
  if (access(path.c_str(), F_OK) != 0 && !Create(path, identity)) {
    return SystemFailure(path, "cannot be created");
  }
  auto node = Observe(path);
  if (!node.ok()) return node;
  if (static_cast<const Layout*>((*node)->mapping_)->identity != identity) {
    return Fail(NodeError::kInvalid, path,
                "was made for another topology, or before the machine's last start; end the "
                "processes that use it and remove it");
  }
  if (!(*node)->ClaimSlot()) {
    return Fail(
        NodeError::kInvalid, path,
        "has " + std::to_string(kMaxProcesses) + " processes already, which are all it can");
  }
  return node;
}

NodeResult<std::unique_ptr<NodeFile>> NodeFile::Private() {
  void* const mapping =
      mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return Failure<NodeError>{NodeError::kUnreadable, "no memory for an emulated node"};
  }
  Initialize(static_cast<Layout*>(mapping)->state);
  return std::unique_ptr<NodeFile>(new NodeFile(UniqueFd(), mapping));
}

// Takes the first free slot and forgets what its last owner had taken.
bool NodeFile::ClaimSlot() {
  for (unsigned slot = 0; slot < kMaxProcesses; ++slot) {
    struct flock lock = LockOf(slot, F_WRLCK);
    if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) continue;
    slot_ = slot;
    ForgetTaken(slot);
    return true;
  }
  return false;
}

void NodeFile::LeaveToParent() {
  if (!file_) return;
  // Both the descriptor and the mapping would keep the locks; without memory there is no mapping.
  file_.Reset();
  const void* const own = mmap(mapping_, sizeof(Layout), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (own == MAP_FAILED) munmap(mapping_, sizeof(Layout));
}

// Returns all memory of a slot.
void NodeFile::ForgetTaken(unsigned slot) {
  for (auto& taken : state_->memory.taken) taken[slot].store(0, std::memory_order_relaxed);
}

void NodeFile::ReclaimOfDead(unsigned place) {
  if (!file_) return;
  for (unsigned slot = 0; slot < kMaxProcesses; ++slot) {
    if (slot == slot_ || state_->memory.taken[place][slot].load(std::memory_order_relaxed) == 0) {
      continue;
    }
    struct flock lock = LockOf(slot, F_WRLCK);
    if (fcntl(file_.get(), F_OFD_SETLK, &lock) != 0) continue;  // alive
    ForgetTaken(slot);
    lock.l_type = F_UNLCK;
    fcntl(file_.get(), F_OFD_SETLK, &lock);
  }
}

}  // namespace torpor::emulator
